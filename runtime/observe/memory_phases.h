// SPDX-License-Identifier: Apache-2.0
//
// How much memory a rank's tensors take at the phases of a training step: what the plan says,
// followed through the functions and actions of the step.
#pragma once

#include "runtime/pipeline.h"
#include "runtime/plan/plan.h"
#include "runtime/program.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace trainc {

enum class memory_phase { pre_forward, post_forward, pre_backward, post_backward, post_update };
constexpr int memory_phase_count = 5;
const char *name_of(memory_phase phase); // `pre_forward`

// Bytes; below 0 where the phase was not reached, or it is not known.
struct phase_memory {
  int64_t activations = -1; // alive in the arena
  int64_t stash = -1;       // slots that a micro-batch holds
  int64_t resident = -1;    // of the process, as the system counts it
  int64_t device_used = -1, device_free = -1;
};

using memory_matrix = std::array<phase_memory, memory_phase_count>;

// What the plan says of one function.
struct function_memory {
  std::vector<int64_t> alive; // before each step, and at the end: bytes of activations
  int first_backward = 0;     // the first step that computes a gradient; else their number
};

// By the function's name.
std::map<std::string, function_memory> function_memories(const plan &plan);

// Follows a training step. Of a phase that comes more than once, with several micro-batches, the
// time counts at which most bytes are alive.
class memory_phases {
public:
  // `stages`: null where the step is in one piece. `measure` sets what is measured.
  memory_phases(std::map<std::string, function_memory> functions, const pipeline *stages,
                std::function<void(phase_memory &)> measure);

  void begin_step();
  void begins(const stage_action &action);
  void enter(const char *function);
  void begin(int step);
  void leave();

  const memory_matrix &matrix() const { return matrix_; }

private:
  void take(memory_phase phase, int64_t alive);
  int64_t stash() const;

  std::map<std::string, function_memory> functions_;
  const pipeline *stages_;
  std::function<void(phase_memory &)> measure_;
  memory_matrix matrix_;
  const function_memory *function_ = nullptr; // that runs
  bool is_update_ = false;
  stage_action_kind action_ = stage_action_kind::backward; // of a step in stages
  int chunk_ = -1;
  std::vector<int> slots_; // in use, of each chunk
};

// The same without running anything: what a rank of the stage would have.
memory_matrix planned_matrix(const program &program, int stage,
                             const std::map<std::string, function_memory> &functions);

} // namespace trainc
