// SPDX-License-Identifier: Apache-2.0
//
// Forward, backward and update over the micro-batches of a step.
#include "runtime/gradient_step.h"

#include "runtime/index_check.h"
#include "runtime/random.h"
#include "runtime/signals.h"

namespace trainc {
namespace {

// Throws on every rank when any has a status; the lowest such rank has the
// message. `all` holds `stride` numbers per rank, the status first.
void throw_if_any(const run &run, const std::vector<double> &all, size_t stride,
                  const std::string &own_message) {
  for (int rank = 0; rank < run.ranks.size(); ++rank)
    if (auto status = static_cast<int>(all[static_cast<size_t>(rank) * stride]))
      throw failure(static_cast<exit_code>(status), rank == run.ranks.rank() ? own_message : "",
                    /*everywhere=*/true);
}

} // namespace

gradient_step::gradient_step(run &run, batch_feed &feed, int64_t micro_batches, uint64_t seed)
    : run_(run), feed_(feed), micro_batches_(micro_batches), seed_(seed),
      own_(static_cast<size_t>(micro_batches) + 2),
      all_(own_.size() * static_cast<size_t>(run.ranks.size())) {}

void gradient_step::queue(data_part part, int64_t first_batch, int64_t step, bool with_update) {
  const int64_t ranks = run_.ranks.size();
  for (int64_t j = 0; j < micro_batches_; ++j) {
    const bool first = j == 0, last = j == micro_batches_ - 1;
    const int64_t batch = first_batch + j * ranks + run_.ranks.rank();
    // A rank that fails goes on to meet the others in the sums.
    try {
      if (status_ == 0)
        feed_.submit(part, batch);
    } catch (const failure &error) {
      status_ = error.code;
      message_ = error.message;
    }
    if (run_.prog.draws_random_numbers)
      run_.target.set_bits(run_.prog.random_key_offset,
                           micro_batch_key(seed_, step, batch - first_batch));
    const bool updates = last && with_update;
    // A device that replays what was recorded waits in `finish` instead.
    const auto work = [&] {
      if (status_ == 0)
        run_.prog.forward_backward(run_.places());
      run_.watch.now(activity::exchanging);
      run_.target.sum_gradients(first, last);
      run_.watch.now(activity::computing);
      if (updates)
        run_.prog.update(run_.places());
    };
    const int key = (first ? first_key : 0) + (last ? last_key : 0) + (updates ? update_key : 0);
    run_.target.run(key, std::ref(work)); // a reference: nothing is allocated
    run_.target.keep(run_.prog.loss, static_cast<int>(j));
    keep_index_check(run_.target, run_.prog, index_slot(j));
    feed_.load_ahead(part, batch + ranks); // of this step or the next
  }
}

step_result gradient_step::take(data_part part, int64_t first_batch, int64_t step,
                                bool with_update) {
  status_ = 0;
  run_.watch.now(activity::computing);
  queue(part, first_batch, step, with_update);
  const int norm_slot = static_cast<int>(micro_batches_);
  if (with_update)
    run_.target.keep({"gradient_norm",
                      data_type::f64,
                      0,
                      {},
                      arena_kind::workspace,
                      run_.prog.gradient_norm_offset},
                     norm_slot);
  run_.watch.now(activity::exchanging); // a device that replays exchanges meanwhile
  run_.target.finish();

  for (int64_t j = 0; j < micro_batches_ && status_ == 0; ++j)
    if (message_ = index_problem(run_.target, run_.prog, index_slot(j)); !message_.empty())
      status_ = exit_data;

  own_[0] = status_; // all in this message are numbers
  own_[1] = take_signal_requests();
  for (int64_t j = 0; j < micro_batches_; ++j)
    own_[static_cast<size_t>(j) + 2] = run_.target.kept(static_cast<int>(j));
  run_.ranks.gather(own_.data(), static_cast<int64_t>(own_.size() * sizeof(double)), all_.data());
  run_.watch.now(activity::computing);
  throw_if_any(run_, all_, own_.size(), message_);

  step_result result = {0, with_update ? run_.target.kept(norm_slot) : 0, no_request};
  auto ranks = static_cast<size_t>(run_.ranks.size());
  for (size_t rank = 0; rank < ranks; ++rank)
    result.requests |= static_cast<int>(all_[rank * own_.size() + 1]);
  for (size_t j = 0; j < static_cast<size_t>(micro_batches_); ++j)
    for (size_t rank = 0; rank < ranks; ++rank)
      result.loss += all_[rank * own_.size() + 2 + j];
  result.loss /= static_cast<double>(batches_per_step());
  return result;
}

mean_loss::mean_loss(run &run, batch_feed &feed)
    : run_(run), feed_(feed), all_(2 * static_cast<size_t>(run.ranks.size())) {}

void evaluate_batch(run &run, const std::function<void()> &meanwhile) {
  constexpr int index_slot = 1; // and 2
  run.target.run(evaluation_key, [&run] { run.prog.evaluate(run.places()); });
  keep_index_check(run.target, run.prog, index_slot);
  meanwhile();
  run.target.finish();
  if (std::string problem = index_problem(run.target, run.prog, index_slot); !problem.empty())
    throw failure(exit_data, problem);
}

double mean_loss::operator()(data_part part, int64_t count) {
  double sum = 0;
  int ranks = run_.ranks.size();
  for (int64_t first = 0; first < count; first += ranks) {
    double own[2] = {0, 0}; // status, loss
    run_.watch.begin_batch();
    run_.watch.now(activity::evaluating);
    std::string message;
    if (int64_t batch = first + run_.ranks.rank(); batch < count) {
      try {
        feed_.submit(part, batch);
        const auto meanwhile = [&] {
          run_.target.keep(run_.prog.loss, 0);
          if (batch + ranks < count)
            feed_.load_ahead(part, batch + ranks);
        };
        evaluate_batch(run_, std::ref(meanwhile)); // a reference: nothing is allocated
        own[1] = run_.target.kept(0);
      } catch (const failure &error) {
        own[0] = error.code;
        message = error.message;
      }
    }
    run_.watch.now(activity::exchanging);
    run_.ranks.gather(own, sizeof own, all_.data());
    run_.watch.now(activity::evaluating);
    throw_if_any(run_, all_, 2, message);
    for (int rank = 0; rank < ranks && first + rank < count; ++rank)
      sum += all_[2 * static_cast<size_t>(rank) + 1];
  }
  return sum / static_cast<double>(count);
}

} // namespace trainc
