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
#include <cstring>

namespace trainc {

namespace {
constexpr size_t status = 0, asked = 1, weight = 2, sums = 3; // of a rank's numbers
constexpr int loss_slot = 0, weight_slot = 1, index_slot = 2; // of device::keep; index: and 3
} // namespace

void evaluate_batch(run &run, const std::function<void()> &meanwhile) {
  run.target.run(entry::evaluate);
  keep_index_check(run.target, run.prog, index_slot);
  meanwhile();
  run.target.finish();
  if (std::string problem = index_problem(run.target, run.prog, index_slot); !problem.empty())
    throw failure(exit_data, problem);
}

evaluation::evaluation(run &run, loader &data, batch_feed &feed)
    : run_(run), data_(data), feed_(feed),
      numbers_(sums + 1 + static_cast<size_t>(run.prog.metric_count)), own_(numbers_),
      all_(numbers_ * static_cast<size_t>(run.ranks.size())), results_({{"loss", 0}}) {
  if (strcmp(run.prog.loss_name, "cross_entropy") == 0)
    results_.push_back({"perplexity", 0});
  for (int64_t i = 0; i < run.prog.metric_count; ++i)
    results_.push_back({run.prog.metrics[i].name, 0});
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

void evaluation::add_batch(data_part part, int64_t batch) {
  int64_t size = data_.samples_per_batch(), count = data_.samples_in(part, batch);
  bool counts_labels = run_.prog.loss_weight.name;
  own_[weight] = counts_labels ? run_.target.kept(weight_slot)
                               : static_cast<double>(count) / static_cast<double>(size);
  double loss = counts_labels || count == size ? run_.target.kept(loss_slot)
                                               : mean_of(run_.prog.sample_losses, count);
  own_[sums] = weighed(loss, own_[weight]);
  for (int64_t i = 0; i < run_.prog.metric_count; ++i) {
    const tensor_place &metric = run_.prog.metrics[i];
    int64_t values = metric.rank == 0 ? 1 : count == size ? metric.shape[0] : count;
    own_[sums + 1 + static_cast<size_t>(i)] = weighed(mean_of(metric, values), own_[weight]);
  }
}

int evaluation::operator()(data_part part, int64_t count, const std::function<int()> &requests) {
  double whole = 0;
  for (named_number &result : results_)
    result.value = 0;
  const size_t first_metric = results_.size() - static_cast<size_t>(run_.prog.metric_count);
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
          run_.target.keep(run_.prog.loss, loss_slot);
          if (run_.prog.loss_weight.name)
            run_.target.keep(run_.prog.loss_weight, weight_slot);
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
      const double *numbers = all_.data() + numbers_ * static_cast<size_t>(rank);
      whole += numbers[weight];
      results_[0].value += numbers[sums];
      for (size_t i = first_metric; i < results_.size(); ++i)
        results_[i].value += numbers[sums + 1 + i - first_metric];
    }
  }
  for (named_number &result : results_)
    result.value /= whole;
  if (first_metric > 1)
    results_[1].value = std::exp(results_[0].value);
  return no_request;
}

} // namespace trainc
