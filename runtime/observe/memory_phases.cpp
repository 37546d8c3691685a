// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/memory_phases.h"

#include "runtime/observe/living_bytes.h"
#include "runtime/plan/titles.h"

#include <algorithm>
#include <utility>

namespace trainc {
namespace {

constexpr const char *whole_step = "forward_backward", *update_of_step = "update";

int first_backward_of(const std::vector<planned_step> &steps) {
  auto is_of_backward = [](const planned_step &step) { return length_of_prefix(step.title()) > 0; };
  return static_cast<int>(std::find_if(steps.begin(), steps.end(), is_of_backward) - steps.begin());
}

} // namespace

const char *name_of(memory_phase phase) {
  static constexpr const char *names[] = {"pre_forward", "post_forward", "pre_backward",
                                          "post_backward", "post_update"};
  return names[static_cast<int>(phase)];
}

std::map<std::string, function_memory> function_memories(const plan &plan) {
  std::map<std::string, function_memory> functions;
  for (const planned_entry &entry : plan.entries)
    functions[entry.name] = {living_bytes_of(entry, "activations").between,
                             first_backward_of(entry.steps)};
  return functions;
}

memory_phases::memory_phases(std::map<std::string, function_memory> functions,
                             const pipeline *stages, std::function<void(phase_memory &)> measure)
    : functions_(std::move(functions)), stages_(stages), measure_(std::move(measure)),
      slots_(stages ? stages->chunks.size() : 0) {}

void memory_phases::begin_step() {
  matrix_.fill({});
  std::fill(slots_.begin(), slots_.end(), 0);
  function_ = nullptr;
  action_ = stage_action_kind::backward;
  chunk_ = -1;
}

void memory_phases::begins(const stage_action &action) {
  action_ = action.kind;
  chunk_ = action.chunk;
  if (stages_ && action_ == stage_action_kind::forward)
    ++slots_[static_cast<size_t>(chunk_)];
}

void memory_phases::enter(const char *function) {
  auto known = functions_.find(function);
  const bool is_of_step = known != functions_.end() && !known->second.alive.empty();
  is_update_ = is_of_step && known->first == update_of_step;
  const bool is_whole = is_of_step && known->first == whole_step;
  function_ = is_update_ || is_whole || (is_of_step && stages_) ? &known->second : nullptr;
  if (!function_ || is_update_)
    return;
  const bool is_forward = !stages_ || action_ == stage_action_kind::forward;
  take(is_forward ? memory_phase::pre_forward : memory_phase::pre_backward,
       function_->alive.front());
}

// A step in one piece has both passes in one function.
void memory_phases::begin(int step) {
  if (!function_ || stages_ || is_update_ || step != function_->first_backward ||
      static_cast<size_t>(step) >= function_->alive.size())
    return;
  const int64_t alive = function_->alive[static_cast<size_t>(step)];
  take(memory_phase::post_forward, alive);
  take(memory_phase::pre_backward, alive);
}

void memory_phases::leave() {
  if (!function_)
    return;
  const bool is_forward = stages_ && !is_update_ && action_ == stage_action_kind::forward;
  take(is_update_   ? memory_phase::post_update
       : is_forward ? memory_phase::post_forward
                    : memory_phase::post_backward,
       function_->alive.back());
  function_ = nullptr;
  if (!stages_ || is_update_ || is_forward || chunk_ < 0)
    return;
  // A slot is free once the last function that reads it has ended.
  const bool has_another = stages_->chunks[chunk_].weight_gradient != nullptr;
  if (!has_another || action_ == stage_action_kind::weight_gradient)
    --slots_[static_cast<size_t>(chunk_)];
}

int64_t memory_phases::stash() const {
  int64_t bytes = 0;
  for (size_t chunk = 0; chunk < slots_.size(); ++chunk)
    bytes += slots_[chunk] * stages_->chunks[chunk].slot_bytes;
  return bytes;
}

void memory_phases::take(memory_phase phase, int64_t alive) {
  phase_memory &most = matrix_[static_cast<size_t>(phase)];
  phase_memory now;
  now.activations = alive;
  now.stash = stash();
  if (now.activations + now.stash <= most.activations + most.stash)
    return;
  measure_(now);
  most = now;
}

memory_matrix planned_matrix(const program &program, int stage,
                             const std::map<std::string, function_memory> &functions) {
  memory_phases phases(functions, program.stages, [](phase_memory &) {});
  auto run = [&](const std::string &name) {
    phases.enter(name.c_str());
    if (auto known = functions.find(name); known != functions.end())
      phases.begin(known->second.first_backward);
    phases.leave();
  };
  phases.begin_step();
  if (program.stages) {
    for (const stage_action &action : program.stages->lists[stage]) {
      phases.begins(action);
      const char *function = action.kind == stage_action_kind::forward ? "forward_"
                             : action.kind == stage_action_kind::weight_gradient
                                 ? "weight_gradient_"
                             : action.kind == stage_action_kind::backward ||
                                     action.kind == stage_action_kind::input_gradient
                                 ? "backward_"
                                 : nullptr;
      if (function)
        run(function + std::to_string(action.chunk));
    }
  } else {
    run(whole_step);
  }
  run(update_of_step);
  return phases.matrix();
}

} // namespace trainc
