// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/program_memory.h"

#include "runtime/files/data_types.h"

#include <cstring>

namespace trainc {
namespace {

bool is_for_cuda(const program &program) { return strcmp(program.target, "cuda") == 0; }

int64_t bytes_of_ranges(const range_list &list, data_type type) {
  int64_t elements = 0;
  for (const element_range &range : list)
    elements += range.end - range.begin;
  return elements * bytes_of(type);
}

void add_messages_of(const program &program, bool shares_memory, std::vector<stage_needs> &stages) {
  const message_format &format = is_for_cuda(program) ? cuda_messages
                                 : shares_memory      ? cpu_messages
                                                      : cpu_sent_messages;
  const pipeline &pipeline = *program.stages;
  std::vector<message_needs> messages;
  auto add = [&](int from, int to, int places, std::span<const crossing_tensor> tensors) {
    messages.push_back(
        {pipeline.stage_of(from), pipeline.stage_of(to), places,
         place_bytes(format, tensors.size(), [&](size_t i) { return tensors[i].bytes; })});
  };
  for (const chunk_boundary &each : pipeline.boundaries) {
    add(each.from, each.to, each.activation_places, each.activations);
    add(each.to, each.from, each.gradient_places, each.gradients);
  }
  add_messages(stages, messages, format);
}

} // namespace

memory_needs memory_needs_of(const program &program, bool shares_memory) {
  auto arena = [&](arena_kind kind) { return program.arena_bytes[static_cast<int>(kind)]; };
  memory_needs needs;
  needs.parameters = arena(arena_kind::parameters);
  for (const parameter_place &place : program.parameters)
    if (place.role == parameter_role::buffer)
      needs.buffers += byte_count(place.tensor);
  needs.frozen = program.frozen_bytes;
  needs.gradients = arena(arena_kind::gradients);
  needs.state = arena(arena_kind::optimizer_state);
  needs.workspace = arena(arena_kind::workspace);
  needs.constants = program.constant_bytes;
  needs.every_rank_has_all = is_for_cuda(program);
  needs.state_in_parts = is_for_cuda(program) && program.updates_in_parts;
  if (!program.stages) {
    needs.stages = {{needs.gradients, arena(arena_kind::activations), 0, 0}};
    return needs;
  }
  for (int stage = 0; stage < program.stages->stages; ++stage) {
    stage_needs &of = needs.stages.emplace_back();
    of.activations = program.stages->activation_bytes(stage);
    program.stages->for_each_chunk(stage, [&](const chunk_program &chunk, int) {
      of.gradients += bytes_of_ranges(chunk.gradients, program.parameter_type) +
                      bytes_of_ranges(chunk.weight_gradients, program.parameter_type);
      of.stash += chunk.slots * chunk.slot_bytes;
    });
  }
  add_messages_of(program, shares_memory, needs.stages);
  return needs;
}

sharing sharing_of(const program &program, shard_kind asked, bool shares_memory) {
  if (program.shards_gradients)
    return sharing::gradients;
  const bool in_stages = program.stages && !is_for_cuda(program) && shares_memory;
  return in_stages || asked == shard_kind::optimizer ? sharing::state : sharing::none;
}

} // namespace trainc
