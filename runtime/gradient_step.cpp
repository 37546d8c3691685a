// SPDX-License-Identifier: Apache-2.0
//
// Forward and backward over the micro-batches of a step.
#include "runtime/gradient_step.h"

#include "runtime/signals.h"

namespace trainc {
namespace {

// Throws on every rank when any has a status; the lowest such rank has the
// message. `all` holds `stride` numbers per rank, the status first.
void throw_if_any(const run &run, const std::vector<double> &all, size_t stride,
                  const std::string &own_message) {
  for (int rank = 0; rank < run.ranks.size(); ++rank)
    if (auto status = static_cast<int>(all[static_cast<size_t>(rank) * stride]))
      throw failure(static_cast<exit_code>(status), rank == run.ranks.rank() ? own_message : "");
}

} // namespace

gradient_step::gradient_step(run &run, loader &data, int64_t micro_batches)
    : run_(run), data_(data), micro_batches_(micro_batches),
      own_(static_cast<size_t>(micro_batches) + 2),
      all_(own_.size() * static_cast<size_t>(run.ranks.size())) {}

gradient_result gradient_step::operator()(data_part part, int64_t first_batch) {
  std::string message;
  own_[0] = 0; // an exit code, as all in this message a number
  for (int64_t j = 0; j < micro_batches_; ++j) {
    // A rank that fails goes on to meet the others in the sums.
    try {
      if (own_[0] == 0) {
        data_.load(part, first_batch + j * run_.ranks.size() + run_.ranks.rank(), run_.places());
        run_.prog.forward_backward(run_.places());
      }
    } catch (const failure &error) {
      own_[0] = error.code;
      message = error.message;
    }
    own_[static_cast<size_t>(j) + 2] = run_.loss();
    run_.ranks.sum_gradients(run_.accumulator, j == 0, j == micro_batches_ - 1);
  }
  own_[1] = take_signal_requests();
  run_.ranks.gather(own_.data(), static_cast<int64_t>(own_.size() * sizeof(double)), all_.data());
  throw_if_any(run_, all_, own_.size(), message);

  gradient_result result = {0, no_request};
  auto ranks = static_cast<size_t>(run_.ranks.size());
  for (size_t rank = 0; rank < ranks; ++rank)
    result.requests |= static_cast<int>(all_[rank * own_.size() + 1]);
  for (size_t j = 0; j < static_cast<size_t>(micro_batches_); ++j)
    for (size_t rank = 0; rank < ranks; ++rank)
      result.loss += all_[rank * own_.size() + 2 + j];
  result.loss /= static_cast<double>(batches_per_step());
  return result;
}

mean_loss::mean_loss(run &run, loader &data)
    : run_(run), data_(data), all_(2 * static_cast<size_t>(run.ranks.size())) {}

double mean_loss::operator()(data_part part, int64_t count) {
  double sum = 0;
  int ranks = run_.ranks.size();
  for (int64_t first = 0; first < count; first += ranks) {
    double own[2] = {0, 0}; // status, loss
    std::string message;
    if (int64_t batch = first + run_.ranks.rank(); batch < count) {
      try {
        data_.load(part, batch, run_.places());
        run_.prog.evaluate(run_.places());
        own[1] = run_.loss();
      } catch (const failure &error) {
        own[0] = error.code;
        message = error.message;
      }
    }
    run_.ranks.gather(own, sizeof own, all_.data());
    throw_if_any(run_, all_, 2, message);
    for (int rank = 0; rank < ranks && first + rank < count; ++rank)
      sum += all_[2 * static_cast<size_t>(rank) + 1];
  }
  return sum / static_cast<double>(count);
}

} // namespace trainc
