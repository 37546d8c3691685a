// SPDX-License-Identifier: Apache-2.0
//
// Forward, backward and update over the micro-batches of a step.
#include "runtime/gradient_step.h"

#include "runtime/data_types.h"
#include "runtime/index_check.h"
#include "runtime/random.h"
#include "runtime/signals.h"

#include <cmath>

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

// Of a micro-batch without a label that counts the mean is no number, and no part of a sum.
double weighed(double loss, double weight) { return weight > 0 ? loss * weight : 0; }

} // namespace

gradient_step::gradient_step(run &run, batch_feed &feed, int64_t micro_batches, uint64_t seed,
                             bool mean_per_batch)
    : run_(run), feed_(feed), micro_batches_(micro_batches), seed_(seed),
      mean_per_batch_(mean_per_batch), own_(2 * static_cast<size_t>(micro_batches) + 2),
      all_(own_.size() * static_cast<size_t>(run.ranks.size())) {}

// A rank that fails goes on to meet the others in the sums, where its fault stops the update.
void gradient_step::submit(data_part part, int64_t batch, int64_t next) {
  try {
    if (status_ == 0)
      feed_.submit(part, batch, next);
  } catch (const failure &error) {
    status_ = error.code;
    message_ = error.message;
  }
  if (status_ != 0)
    feed_.submit_nothing();
  run_.target.set_scalar(run_.prog.batch_fault_offset, status_ != 0 ? 1 : 0);
  if (run_.prog.loss_weight.name)
    run_.target.set_scalar(run_.prog.mean_per_batch_offset, mean_per_batch_ ? 1 : 0);
}

void gradient_step::queue(data_part part, int64_t first_batch, int64_t step, bool with_update) {
  const int64_t own_first = run_.ranks.rank() * micro_batches_;
  for (int64_t j = 0; j < micro_batches_; ++j) {
    const bool is_last = j == micro_batches_ - 1;
    const int64_t number = own_first + j; // over all ranks
    // Of this step or the next.
    const int64_t next = first_batch + (is_last ? batches_per_step() + own_first : number + 1);
    submit(part, first_batch + number, next);
    if (run_.prog.draws_random_numbers)
      run_.target.set_bits(run_.prog.random_key_offset, micro_batch_key(seed_, step, number));
    run_.target.run(entry::forward_backward);
    run_.watch.now(activity::exchanging);
    run_.target.sum_gradients(j);
    run_.watch.now(activity::computing);
    run_.target.keep(run_.prog.loss, static_cast<int>(j));
    if (run_.prog.loss_weight.name)
      run_.target.keep(run_.prog.loss_weight, weight_slot(j));
    keep_index_check(run_.target, run_.prog, index_slot(j));
    if (is_last && with_update)
      run_.target.run(entry::update);
    feed_.load_ahead(part, next);
  }
}

step_result gradient_step::take(data_part part, int64_t first_batch, int64_t step,
                                bool with_update) {
  status_ = 0;
  run_.watch.now(activity::computing);
  queue(part, first_batch, step, with_update);
  if (with_update)
    run_.target.keep({"gradient_norm",
                      data_type::f64,
                      0,
                      {},
                      arena_kind::workspace,
                      run_.prog.gradient_norm_offset},
                     norm_slot());
  run_.watch.now(activity::exchanging); // a device that replays exchanges meanwhile
  run_.target.finish();

  for (int64_t j = 0; j < micro_batches_ && status_ == 0; ++j)
    if (message_ = index_problem(run_.target, run_.prog, index_slot(j)); !message_.empty())
      status_ = exit_data;

  own_[0] = status_; // all in this message are numbers
  own_[1] = take_signal_requests();
  for (int64_t j = 0; j < micro_batches_; ++j) {
    own_[static_cast<size_t>(2 * j) + 2] = run_.target.kept(static_cast<int>(j));
    own_[static_cast<size_t>(2 * j) + 3] =
        run_.prog.loss_weight.name ? run_.target.kept(weight_slot(j)) : 1;
  }
  run_.ranks.gather(own_.data(), static_cast<int64_t>(own_.size() * sizeof(double)), all_.data());
  run_.watch.now(activity::computing);
  throw_if_any(run_, all_, own_.size(), message_);

  step_result result = {0, 0, with_update ? run_.target.kept(norm_slot()) : 0, with_update, 0};
  auto ranks = static_cast<size_t>(run_.ranks.size());
  for (size_t rank = 0; rank < ranks; ++rank)
    result.requests |= static_cast<int>(all_[rank * own_.size() + 1]);
  for (size_t rank = 0; rank < ranks; ++rank)
    for (size_t j = 0; j < static_cast<size_t>(micro_batches_); ++j) {
      const double *entry = all_.data() + rank * own_.size() + 2 + 2 * j;
      result.loss += weighed(entry[0], entry[1]);
      result.weight += entry[1];
    }
  result.loss /= result.weight;
  result.applied = with_update && std::isfinite(result.gradient_norm);
  return result;
}

void evaluate_batch(run &run, const std::function<void()> &meanwhile) {
  constexpr int index_slot = 2; // and 3; behind loss and weight
  run.target.run(entry::evaluate);
  keep_index_check(run.target, run.prog, index_slot);
  meanwhile();
  run.target.finish();
  if (std::string problem = index_problem(run.target, run.prog, index_slot); !problem.empty())
    throw failure(exit_data, problem);
}

mean_loss::mean_loss(run &run, loader &data, batch_feed &feed)
    : run_(run), data_(data), feed_(feed), all_(3 * static_cast<size_t>(run.ranks.size())) {}

mean_loss::weighed_loss mean_loss::evaluated(data_part part, int64_t batch) {
  if (run_.prog.loss_weight.name) {
    double weight = run_.target.kept(1);
    return {weight, weighed(run_.target.kept(0), weight)};
  }
  int64_t size = data_.samples_per_batch(), count = data_.samples_in(part, batch);
  if (count == size)
    return {1, run_.target.kept(0)};
  const tensor_place &losses = run_.prog.sample_losses;
  int64_t bytes = bytes_of(losses.type);
  const char *values = run_.target.read(run_.places()[losses.arena] + losses.offset, size * bytes);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += number_at(losses.type, values + i * bytes);
  return {static_cast<double>(count) / static_cast<double>(size), sum / static_cast<double>(size)};
}

double mean_loss::operator()(data_part part, int64_t count) {
  weighed_loss total = {0, 0};
  constexpr size_t numbers = 3; // status, weight, loss
  int ranks = run_.ranks.size();
  for (int64_t first = 0; first < count; first += ranks) {
    double own[numbers] = {0, 0, 0};
    run_.watch.begin_batch();
    run_.watch.now(activity::evaluating);
    std::string message;
    if (int64_t batch = first + run_.ranks.rank(); batch < count) {
      try {
        const int64_t next = batch + ranks < count ? batch + ranks : -1;
        feed_.submit(part, batch, next);
        const auto meanwhile = [&] {
          run_.target.keep(run_.prog.loss, 0);
          if (run_.prog.loss_weight.name)
            run_.target.keep(run_.prog.loss_weight, 1);
          if (next >= 0)
            feed_.load_ahead(part, next);
        };
        evaluate_batch(run_, std::ref(meanwhile)); // a reference: nothing is allocated
        weighed_loss result = evaluated(part, batch);
        own[1] = result.weight;
        own[2] = result.loss;
      } catch (const failure &error) {
        own[0] = error.code;
        message = error.message;
      }
    }
    run_.watch.now(activity::exchanging);
    run_.ranks.gather(own, sizeof own, all_.data());
    run_.watch.now(activity::evaluating);
    throw_if_any(run_, all_, numbers, message);
    for (int rank = 0; rank < ranks && first + rank < count; ++rank) {
      total.weight += all_[numbers * static_cast<size_t>(rank) + 1];
      total.loss += all_[numbers * static_cast<size_t>(rank) + 2];
    }
  }
  return total.loss / total.weight;
}

} // namespace trainc
