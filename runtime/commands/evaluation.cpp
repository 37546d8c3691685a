// SPDX-License-Identifier: Apache-2.0
//
// Sums over batches, each weighed by what counts in it (evaluation.h).
#include "runtime/commands/evaluation.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/files/data_types.h"
#include "runtime/process/signals.h"
#include "runtime/step/micro_batch.h"

#include <algorithm>
#include <cmath>

namespace trainc {

evaluation::evaluation(run &run, loader &data, batch_feed &feed)
    : run_(run), data_(data), feed_(feed) {
  const program &prog = run.prog;
  for (const loss_part &part : prog.loss_parts)
    quantities_.push_back({part.value, part.weight, part.sample_losses, part.is_sum});
  if (prog.loss_parts.empty())
    quantities_.push_back({prog.loss, prog.loss_weight, prog.sample_losses, false});
  for (const metric_place &metric : prog.metrics) {
    bool weighs_as_loss = metric.values.rank == 0 && !metric.weight.name;
    quantities_.push_back(
        {metric.values, weighs_as_loss ? prog.loss_weight : metric.weight, {}, false});
  }
  for (const char *name : names_of_results(prog))
    results_.push_back({name, 0});
  totals_.resize(quantities_.size());
  reports_.emplace(run, quantities_.size());
}

// The mean in a batch whose first `count` samples count.
weighed_mean evaluation::mean_in_batch(const quantity &of, int64_t count) const {
  const int64_t size = data_.samples_per_batch();
  const auto mean = [this](const tensor_place &values, int64_t first) {
    return mean_of(run_.target, values, first);
  };
  const double share = static_cast<double>(count) / static_cast<double>(size);
  if (of.values.rank > 0)
    return {mean(of.values, count == size ? of.values.shape[0] : count), share};
  if (of.weight.name)
    return {mean(of.values, 1), mean(of.weight, 1)};
  double value = count == size ? mean(of.values, 1) : mean(of.of_samples, count);
  if (!of.is_sum)
    return {value, share};
  return {count == size ? value : value * static_cast<double>(count), 1};
}

void evaluation::add_batch(data_part part, int64_t batch) {
  int64_t count = data_.samples_in(part, batch);
  for (size_t i = 0; i < quantities_.size(); ++i)
    reports_->my_means()[i] = mean_in_batch(quantities_[i], count);
}

int evaluation::operator()(data_part part, int64_t count, const interruption &ends) {
  std::fill(totals_.begin(), totals_.end(), total{});
  int ranks = run_.ranks.size();
  run_.target.round_parameters();
  for (int64_t first = 0; first < count; first += ranks) {
    reports_->clear();
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
        evaluate_batch(run_.target, run_.prog,
                       std::ref(meanwhile)); // a reference: nothing is allocated
        add_batch(part, batch);
      } catch (const failure &error) {
        reports_->mine().status = error.code;
        message = error.message;
      }
    }
    reports_->mine().requests = ends.mine ? ends.mine() : no_request;
    run_.watch.now(activity::exchanging);
    reports_->exchange(message);
    if (ends.of_all)
      if (int requests = ends.of_all(reports_->requests()); requests != no_request)
        return requests;
    run_.watch.now(activity::evaluating);
    for (int rank = 0; rank < ranks && first + rank < count; ++rank)
      for (size_t i = 0; i < totals_.size(); ++i) {
        const weighed_mean &of_rank = reports_->means_of(rank)[i];
        totals_[i].sum += of_rank.part();
        totals_[i].weight += of_rank.weight;
      }
  }
  set_results();
  return no_request;
}

std::string evaluation::lack_of_labels() const {
  if (parts_without_labels_ == 0)
    return "";
  return parts_without_labels_ == loss_parts_
             ? "the loss ignores every label"
             : format_text("%zu of the %zu parts of the loss %s every label", parts_without_labels_,
                           loss_parts_, parts_without_labels_ == 1 ? "ignores" : "ignore");
}

void evaluation::set_results() {
  const size_t metrics = run_.prog.metrics.size();
  const size_t parts = quantities_.size() - metrics, first_metric = results_.size() - metrics;
  auto result_of = [&](size_t i) {
    return quantities_[i].is_sum ? totals_[i].sum : totals_[i].sum / totals_[i].weight;
  };
  loss_parts_ = parts;
  parts_without_labels_ = 0;
  for (size_t i = 0; i < parts; ++i)
    parts_without_labels_ += !quantities_[i].is_sum && totals_[i].weight == 0 ? 1 : 0;
  results_[0].value = 0;
  for (size_t i = 0; i < parts; ++i)
    results_[0].value += result_of(i);
  if (first_metric > 1)
    results_[1].value = std::exp(results_[0].value);
  for (size_t i = 0; i < metrics; ++i)
    results_[first_metric + i].value = result_of(parts + i);
}

} // namespace trainc
