// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/rank_memory.h"

#include "runtime/ranks/summation_order.h"

#include <algorithm>

namespace trainc {
namespace {

int64_t share_of(int64_t bytes, int64_t ranks) { return (bytes + ranks - 1) / ranks; }

} // namespace

std::vector<rank_memory> memory_of_ranks(const memory_needs &needs, const rank_layout &layout) {
  const auto stages = static_cast<int64_t>(needs.stages.size());
  const int64_t ranks = stages * layout.replicas;
  const bool has_all = stages == 1 || needs.every_rank_has_all;
  const bool shards = layout.shared == sharing::gradients;
  const bool on_host = layout.shared != sharing::none && !needs.every_rank_has_all;
  const int64_t shares = on_host ? layout.ranks_on_host : 1;
  const int accumulators =
      shards ? summation_rounds(layout.replicas, layout.micro_batches, layout.accumulated)
                   .accumulators()
             : summation_order(0, layout.replicas, layout.micro_batches, exchanged_sums::nodes,
                               layout.accumulated)
                   .accumulators();
  int64_t all_gradients = 0; // without what is between them
  for (const stage_needs &stage : needs.stages)
    all_gradients += stage.gradients;
  // A replica's part of the state that goes with gradients of a stage.
  auto own_state = [&](const stage_needs &stage) {
    const double part = static_cast<double>(stage.gradients) /
                        static_cast<double>(std::max<int64_t>(all_gradients, 1));
    const bool among_replicas = layout.shared != sharing::none;
    return share_of(static_cast<int64_t>(static_cast<double>(needs.state) * part),
                    among_replicas ? layout.replicas : 1);
  };
  std::vector<rank_memory> all;
  for (const stage_needs &stage : needs.stages) {
    const int64_t own = stages == 1 ? needs.gradients : stage.gradients;
    rank_memory rank;
    rank.parameters = share_of(needs.parameters, shares);
    rank.frozen = share_of(needs.frozen, layout.ranks_on_host);
    rank.buffers = share_of(needs.buffers, shares);
    rank.state = needs.state_in_parts ? own_state(stage) : share_of(needs.state, shares);
    // The step's total is one for all ranks, in the first one's arena, or each rank's own.
    if (!has_all && !layout.shares_memory)
      rank.gradients = needs.gradients;
    else if (!shards)
      rank.gradients = has_all
                           ? needs.gradients
                           : own + (share_of(needs.gradients - needs.stages[0].gradients, ranks));
    rank.accumulators = shards ? share_of(accumulators * own, layout.replicas) : accumulators * own;
    rank.activations = stage.activations;
    rank.stash = stage.stash;
    rank.messages = stage.messages;
    rank.workspace = needs.workspace;
    rank.constants = needs.constants;
    all.push_back(rank);
  }
  return all;
}

void add_messages(std::vector<stage_needs> &stages, const std::vector<message_needs> &messages,
                  const message_format &format) {
  for (stage_needs &stage : stages)
    stage.messages += format.base;
  for (const message_needs &message : messages) {
    const int64_t bytes = format.box + message.places * message.place_bytes;
    stages[static_cast<size_t>(message.to)].messages += bytes;
    if (format.at_sender && message.from != message.to)
      stages[static_cast<size_t>(message.from)].messages += bytes;
  }
}

} // namespace trainc
