// SPDX-License-Identifier: Apache-2.0
//
// What a rank holds of the memory that the compiler has planned, for a layout of ranks: the one
// place that counts it. The trainer compares it with what is free and prints it at the start;
// trainc's plans and limits and trainc-simulate have their numbers from here too.
#pragma once

#include "runtime/accumulation.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainc {

// What the ranks of a host have once for all of them, each a share.
enum class sharing { none, state, gradients }; // parameters and optimizer state; gradients too
constexpr const char *name_of(sharing shared) {
  return shared == sharing::none ? "none" : shared == sharing::state ? "state" : "gradients";
}

// What a stage has for itself, in bytes.
struct stage_needs {
  int64_t gradients = 0; // that its functions make
  int64_t activations = 0, stash = 0;
  int64_t messages = 0; // places for them
};

// What the program was planned to need; `members` as in runtime/plan/plan.h. Bytes of arenas, which
// are of all stages.
struct memory_needs {
  int64_t parameters = 0, gradients = 0, state = 0, workspace = 0, constants = 0;
  int64_t frozen = 0;              // weights that are mapped: a host has them once
  int64_t buffers = 0;             // of the parameters: running statistics and the like
  bool every_rank_has_all = false; // parameters and gradients, of all stages (CUDA)
  bool state_in_parts = false;     // where every rank has these: of state what it updates
  std::vector<stage_needs> stages; // one where the step is in one piece

  template <typename Visit> void members(Visit &visit) {
    visit("parameters", parameters, "gradients", gradients, "optimizer_state", state, "workspace",
          workspace, "constants", constants, "frozen", frozen);
  }
};

struct rank_layout {
  int replicas = 1;
  int ranks_on_host = 1;
  int64_t micro_batches = 1; // of a step and replica
  sharing shared = sharing::none;
  // False of stages on the CPU that send messages: each rank has a total of all gradients.
  bool shares_memory = true;
  accumulation accumulated = accumulation::pairwise;
};

// Where ranks of a host share what none of them has whole, a rank's even part of it.
struct rank_memory {
  int64_t parameters = 0, buffers = 0; // the latter are a part of the former
  int64_t frozen = 0;                  // an even part of the host's
  int64_t gradients = 0;    // of one micro-batch, and of a step in stages a part of the total
  int64_t accumulators = 0; // sums that wait for other micro-batches; of sharded gradients all
  int64_t state = 0, activations = 0, stash = 0, messages = 0, workspace = 0, constants = 0;

  int64_t bytes() const {
    return parameters + frozen + gradients + accumulators + state + activations + stash + messages +
           workspace + constants;
  }

  template <typename Visit> void members(Visit &visit) {
    visit("parameter_bytes", parameters, "frozen_bytes", frozen, "gradient_bytes", gradients,
          "accumulator_bytes", accumulators, "state_bytes", state, "activation_bytes", activations,
          "stash_bytes", stash, "message_bytes", messages, "workspace_bytes", workspace,
          "constant_bytes", constants);
    visit.sum("bytes", bytes());
  }
};

// What a rank of each stage holds.
std::vector<rank_memory> memory_of_ranks(const memory_needs &needs, const rank_layout &layout);

// How places for messages are laid out: tensors begin at lines; in front of those of a place stands
// a line, and in front of all places of a kind of message a box.
struct message_format {
  int64_t line, box;
  int64_t base;          // of a rank, before what it receives
  bool at_sender = true; // as well as at the receiver
};
constexpr message_format cpu_messages = {64, 128, 4096, false};
constexpr message_format cpu_sent_messages = {64, 0, 0, true}; // not through shared memory
constexpr message_format cuda_messages = {256, 0, 0, true};

constexpr int64_t whole_lines(int64_t bytes, const message_format &format) {
  return (bytes + format.line - 1) / format.line * format.line;
}

// Bytes of `count` tensors that have bytes(i) each.
template <typename Bytes>
int64_t place_bytes(const message_format &format, size_t count, const Bytes &bytes) {
  int64_t all = format.line;
  for (size_t i = 0; i < count; ++i)
    all += whole_lines(bytes(i), format);
  return all;
}

// A kind of message, from a stage to a stage.
struct message_needs {
  int from, to;
  int places;
  int64_t place_bytes;
};
// Adds to each stage what it needs for them.
void add_messages(std::vector<stage_needs> &stages, const std::vector<message_needs> &messages,
                  const message_format &format);

} // namespace trainc
