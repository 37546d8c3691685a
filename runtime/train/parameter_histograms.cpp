// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/parameter_histograms.h"

#include "runtime/ranks/stage_layout.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace trainc {
namespace {

constexpr size_t kinds = 3;
constexpr const char *ungrouped = "ungrouped"; // the parameters of no group

const char *folder_of(tensor_kind kind) {
  return kind == tensor_kind::total_gradient ? "gradients/"
         : kind == tensor_kind::update       ? "updates/"
                                             : "parameters/";
}

} // namespace

parameter_histograms::parameter_histograms(run &run) : run_(run) {
  const auto count = static_cast<size_t>(run.prog.parameter_count);
  for (size_t i = 0; i < count; ++i)
    names_.push_back(module_name(run.prog, run.prog.parameters[i].tensor.name).first);
  taken_.reserve(kinds * count);
}

void parameter_histograms::take(const watched_values &values, statistics_taker &taker) {
  const parameter_role role = run_.prog.parameters[values.parameter].role;
  if (role == parameter_role::trained)
    taken_.push_back({values.tensor.kind, values.parameter, values.statistics(taker)});
}

// Replicas have the same.
void parameter_histograms::bring_to_first() {
  const stage_layout layout(run_.prog, run_.ranks.rank(), run_.ranks.size());
  if (layout.replica > 0)
    return taken_.clear();
  for (int stage = 1; stage < layout.stages; ++stage) {
    const int rank = layout.rank_of(0, stage);
    auto count = static_cast<int64_t>(taken_.size());
    if (run_.ranks.rank() == rank) {
      run_.ranks.send(&count, sizeof count, 0);
      run_.ranks.send(taken_.data(), count * static_cast<int64_t>(sizeof(histogram)), 0);
    } else if (run_.is_first()) {
      run_.ranks.receive(&count, sizeof count, rank);
      const size_t before = taken_.size();
      taken_.resize(before + static_cast<size_t>(count));
      run_.ranks.receive(taken_.data() + before, count * static_cast<int64_t>(sizeof(histogram)),
                         rank);
    }
  }
  auto place = [](const histogram &one) { return std::tuple(one.kind, one.parameter); };
  std::stable_sort(taken_.begin(), taken_.end(),
                   [&](const histogram &a, const histogram &b) { return place(a) < place(b); });
  taken_.erase(std::unique(taken_.begin(), taken_.end(), // a parameter that several stages read
                           [&](const auto &a, const auto &b) { return place(a) == place(b); }),
               taken_.end());
}

// In the order of the parameters, so that the bits do not depend on ranks.
std::vector<group_norm> parameter_histograms::norms_of_groups() const {
  std::vector<group_norm> norms;
  for (const histogram &one : taken_) {
    if (one.kind != tensor_kind::total_gradient)
      continue;
    const std::string group = run_.prog.parameters[one.parameter].group;
    auto known = std::find_if(norms.begin(), norms.end(),
                              [&](const group_norm &of) { return of.group == group; });
    if (known == norms.end())
      known = norms.insert(known, {group, 0});
    known->norm += one.of.nans + one.of.infinities > 0 ? NAN : one.of.sum_of_squares;
  }
  if (norms.size() < 2)
    return {};
  for (group_norm &of : norms) {
    of.group = of.group.empty() ? ungrouped : of.group;
    of.norm = std::sqrt(of.norm);
  }
  return norms;
}

void parameter_histograms::write(int64_t step, run_events &events) {
  if (const std::vector<group_norm> norms = norms_of_groups(); !norms.empty())
    events.write_norms(step, norms);
  if (run_.is_first())
    for (const histogram &one : taken_)
      events.write_histogram(step, folder_of(one.kind) + names_[static_cast<size_t>(one.parameter)],
                             one.of);
  taken_.clear();
}

} // namespace trainc
