// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/update_shares.h"

#include "runtime/cuda/launch.h"
#include "runtime/files/data_types.h"
#include "runtime/ranks/gradient_parts.h"

#include <algorithm>

namespace trainc {
namespace {

// Of parameters and buffers: after them are the step's totals, which nobody updates.
int64_t updated_elements(const program &program) {
  const int64_t bytes =
      program.step_totals.name ? program.step_totals.offset : program.summed_bytes;
  return bytes / bytes_of(program.parameter_type);
}

// Ascending. What no function of a chunk has a gradient of goes to the stage of what is before.
std::vector<update_share> shares_of_stages(const program &program) {
  const int64_t elements = updated_elements(program);
  std::vector<update_share> shares;
  for (int stage = 0; program.stages && stage < program.stages->stages; ++stage)
    program.stages->for_each_chunk(stage, [&](const chunk_program &chunk, int) {
      for (const range_list &list : {chunk.gradients, chunk.weight_gradients})
        for (const element_range &range : list)
          if (range.begin < elements)
            shares.push_back({range, stage, update_share::every_replica});
    });
  if (shares.empty())
    return {{{0, elements}, 0, update_share::every_replica}};
  std::sort(shares.begin(), shares.end(), [](const update_share &a, const update_share &b) {
    return a.range.begin < b.range.begin;
  });
  std::vector<update_share> joined;
  shares[0].range.begin = 0;
  for (const update_share &each : shares) {
    if (!joined.empty() && joined.back().stage == each.stage)
      continue;
    if (!joined.empty())
      joined.back().range.end = each.range.begin;
    joined.push_back(each);
  }
  joined.back().range.end = elements;
  return joined;
}

} // namespace

bool update_shares::are_there(const program &program, int ranks, bool among_replicas) {
  return program.updates_in_parts && ranks > 1 && (program.stages || among_replicas);
}

update_shares::update_shares(const program &program, const stage_layout &layout,
                             bool among_replicas)
    : layout_(layout) {
  for (const update_share &each : shares_of_stages(program)) {
    if (!among_replicas || layout.replicas == 1) {
      all_.push_back(each);
      continue;
    }
    const gradient_parts parts(each.range.end - each.range.begin, layout.replicas);
    for (int replica = 0; replica < layout.replicas; ++replica)
      if (parts.size(replica) > 0)
        all_.push_back(
            {{each.range.begin + parts.begin(replica), each.range.begin + parts.end(replica)},
             each.stage,
             replica});
  }
  find_own();
}

update_shares::update_shares(const program &program, const stage_layout &layout,
                             const std::vector<update_share> &shares)
    : layout_(layout) {
  const int64_t elements = updated_elements(program);
  for (update_share each : shares)
    if (each.range = each.range.within(0, elements); each.range.begin < each.range.end)
      all_.push_back(each);
  find_own();
}

void update_shares::find_own() {
  for (const update_share &each : all_)
    if (is_own(each))
      own_.push_back(each.range);
}

const update_share *update_shares::of(int64_t element) const {
  const auto behind =
      std::upper_bound(all_.begin(), all_.end(), element,
                       [](int64_t value, const auto &share) { return value < share.range.begin; });
  if (behind == all_.begin() || element >= std::prev(behind)->range.end)
    return nullptr;
  return &*std::prev(behind);
}

std::vector<element_range> update_shares::state_bytes(const program &program) const {
  const int64_t size = bytes_of(program.parameter_type);
  const int64_t elements = program.optimizer_slot_bytes / size;
  std::vector<element_range> bytes;
  for (int64_t slot = 0; slot < std::ssize(program.state_names); ++slot)
    for (const element_range &range : own()) {
      const element_range part = range.within(0, elements);
      const int64_t begin = slot * program.optimizer_slot_bytes;
      if (part.begin < part.end)
        bytes.push_back({begin + part.begin * size, begin + part.end * size});
    }
  return bytes;
}

void update_shares::send_updated(char *parameters, data_type type, const rank_group &replicas,
                                 const rank_group &stages) const {
  auto send_all = [&](const rank_group &group, const auto &visit) {
    if (!group.get())
      return;
    check_nccl(ncclGroupStart(), "exchange of updated parameters");
    visit([&](const element_range &range, int root) {
      char *place = parameters + range.begin * bytes_of(type);
      check_nccl(ncclBroadcast(place, place, static_cast<size_t>(range.end - range.begin),
                               nccl_type(type), root, group.get(), compute_stream()),
                 "exchange of updated parameters");
    });
    check_nccl(ncclGroupEnd(), "exchange of updated parameters");
  };
  const bool among_replicas = !all_.empty() && all_[0].replica != update_share::every_replica;
  if (among_replicas)
    send_all(replicas, [&](const auto &send) {
      for (const update_share &each : all_)
        if (each.stage == layout_.stage)
          send(each.range, each.replica);
    });
  send_all(stages, [&](const auto &send) {
    for (const update_share &each : all_)
      send(each.range, each.stage);
  });
}

} // namespace trainc
