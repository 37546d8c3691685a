// SPDX-License-Identifier: Apache-2.0
//
// Sums over batches, each weighed by what counts in it (evaluation.h).
#include "runtime/evaluation.h"

#include "runtime/data_types.h"
#include "runtime/index_check.h"
#include "runtime/rank_numbers.h"
#include "runtime/signals.h"

#include <algorithm>
#include <cmath>

namespace trainc {

namespace {
constexpr size_t status = 0, asked = 1, first_number = 2; // of a rank's numbers
constexpr int index_slot = 0;                             // of device::keep, and 1
} // namespace

void evaluate_batch(run &run, const std::function<void()> &meanwhile) {
  run.target.run(entry::evaluate);
  keep_index_check(run.target, run.prog, run.prog.index_check, index_slot);
  meanwhile();
  run.target.finish();
  if (std::string problem = index_problem(run.target, run.prog, index_slot); !problem.empty())
    throw failure(exit_data, problem);
}

evaluation::evaluation(run &run, loader &data, batch_feed &feed)
    : run_(run), data_(data), feed_(feed), results_({{"loss", 0}}) {
  const program &prog = run.prog;
  for (int64_t i = 0; i < prog.loss_part_count; ++i) {
    const loss_part &part = prog.loss_parts[i];
    quantities_.push_back({part.value, part.weight, part.sample_losses, part.is_sum});
  }
  if (prog.loss_part_count == 0)
    quantities_.push_back({prog.loss, prog.loss_weight, prog.sample_losses, false});
  if (prog.loss_is_log_perplexity)
    results_.push_back({"perplexity", 0});
  for (int64_t i = 0; i < prog.metric_count; ++i) {
    const metric_place &metric = prog.metrics[i];
    bool weighs_as_loss = metric.values.rank == 0 && !metric.weight.name;
    quantities_.push_back(
        {metric.values, weighs_as_loss ? prog.loss_weight : metric.weight, {}, false});
    results_.push_back({metric.values.name, 0});
  }
  totals_.resize(2 * quantities_.size());
  numbers_ = first_number + totals_.size();
  own_.resize(numbers_);
  all_.resize(numbers_ * static_cast<size_t>(run.ranks.size()));
}

double evaluation::mean_of(const tensor_place &values, int64_t count) const {
  int64_t bytes = bytes_of(values.type);
  const char *numbers =
      run_.target.read(run_.places()[values.arena] + values.offset, count * bytes);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += number_at(values.type, numbers + i * bytes);
  return sum / static_cast<double>(count);
}

// Of a batch of which the first `count` samples count.
std::pair<double, double> evaluation::value_and_weight(const quantity &of, int64_t count) const {
  const int64_t size = data_.samples_per_batch();
  const double share = static_cast<double>(count) / static_cast<double>(size);
  if (of.values.rank > 0)
    return {mean_of(of.values, count == size ? of.values.shape[0] : count), share};
  if (of.weight.name)
    return {mean_of(of.values, 1), mean_of(of.weight, 1)};
  double value = count == size ? mean_of(of.values, 1) : mean_of(of.of_samples, count);
  if (!of.is_sum)
    return {value, share};
  return {count == size ? value : value * static_cast<double>(count), 1};
}

void evaluation::add_batch(data_part part, int64_t batch) {
  int64_t count = data_.samples_in(part, batch);
  for (size_t i = 0; i < quantities_.size(); ++i) {
    auto [value, weight] = value_and_weight(quantities_[i], count);
    own_[first_number + 2 * i] = weight;
    own_[first_number + 2 * i + 1] = weighed(value, weight);
  }
}

int evaluation::operator()(data_part part, int64_t count, const std::function<int()> &requests) {
  std::fill(totals_.begin(), totals_.end(), 0);
  int ranks = run_.ranks.size();
  for (int64_t first = 0; first < count; first += ranks) {
    std::fill(own_.begin(), own_.end(), 0);
    run_.watch.begin_batch();
    run_.watch.now(activity::evaluating);
    std::string message;
    if (int64_t batch = first + run_.ranks.rank(); batch < count) {
      try {
        const int64_t next = batch + ranks < count ? batch + ranks : -1;
        feed_.submit(part, batch, next);
        const auto meanwhile = [&] {
          if (next >= 0)
            feed_.load_ahead(part, next);
        };
        evaluate_batch(run_, std::ref(meanwhile)); // a reference: nothing is allocated
        add_batch(part, batch);
      } catch (const failure &error) {
        own_[status] = error.code;
        message = error.message;
      }
    }
    own_[asked] = requests ? requests() : no_request;
    run_.watch.now(activity::exchanging);
    run_.ranks.gather(own_.data(), static_cast<int64_t>(numbers_ * sizeof(double)), all_.data());
    run_.watch.now(activity::evaluating);
    throw_if_any(run_, all_, numbers_, message);
    int interrupts = 0;
    for (int rank = 0; rank < ranks; ++rank)
      interrupts |= static_cast<int>(all_[numbers_ * static_cast<size_t>(rank) + asked]);
    if (interrupts != no_request)
      return interrupts;
    for (int rank = 0; rank < ranks && first + rank < count; ++rank) {
      const double *numbers = all_.data() + numbers_ * static_cast<size_t>(rank) + first_number;
      for (size_t i = 0; i < totals_.size(); ++i)
        totals_[i] += numbers[i];
    }
  }
  set_results();
  return no_request;
}

void evaluation::set_results() {
  const size_t metrics = static_cast<size_t>(run_.prog.metric_count);
  const size_t parts = quantities_.size() - metrics, first_metric = results_.size() - metrics;
  auto total = [&](size_t i) {
    return quantities_[i].is_sum ? totals_[2 * i + 1] : totals_[2 * i + 1] / totals_[2 * i];
  };
  results_[0].value = 0;
  for (size_t i = 0; i < parts; ++i)
    results_[0].value += total(i);
  if (first_metric > 1)
    results_[1].value = std::exp(results_[0].value);
  for (size_t i = 0; i < metrics; ++i)
    results_[first_metric + i].value = total(parts + i);
}

} // namespace trainc
