// SPDX-License-Identifier: Apache-2.0
//
// Follows the steps of the plan while training steps run, and says which tensors are there when:
// what those share that look at tensors (`--watch`, the search for what is not finite).
#pragma once

#include "runtime/observe/tensor_plan.h"
#include "runtime/plan/read_plan.h"
#include "runtime/step/gradient_step.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace trainc {

class plan_observer : public step_clock, public action_observer {
public:
  // Throws `failure` (exit_data) where there is no plan beside the trainer.
  explicit plan_observer(run &run)
      : run_(run), plan_(read_plan(run.folder)), functions_(placed_tensors(plan_)) {}

  // Around training steps: all that the device and `gradient` do is told from here on.
  void attach(gradient_step &gradient) {
    run_.target.observe(this);
    gradient.observe(this);
  }
  void detach(gradient_step &gradient) {
    run_.target.observe(nullptr);
    gradient.observe(nullptr);
  }

  void uses(const arenas &memory) override { memory_ = memory; }
  void enter(const char *function) override {
    step_ = -1;
    auto known = functions_.find(function);
    function_ = known == functions_.end() ? nullptr : &known->second;
    entered(function, function_);
  }
  void begin(int step) override {
    end_of_step();
    step_ = step;
  }
  void leave() override {
    end_of_step();
    step_ = -1;
  }
  void begins(const stage_action &action) override { micro_batch_ = action.micro_batch; }
  void ends() override {}

protected:
  // A function begins; null: it is not in the plan, or is not looked at.
  virtual void entered(const char *name, const planned_function *function) = 0;
  // The tensors are there: step `step` of the function, which makes them, has ended.
  virtual void made(int step, const std::vector<placed_tensor> &tensors) = 0;

  // Elements of the largest tensor.
  int64_t most_elements() const {
    int64_t most = 1;
    auto look_at = [&](const std::vector<placed_tensor> &tensors) {
      for (const placed_tensor &tensor : tensors)
        most = std::max(most, tensor.elements());
    };
    for (const auto &[name, function] : functions_) {
      look_at(function.arguments);
      for (const auto &made : function.made)
        look_at(made);
    }
    return most;
  }

  // The elements of a tensor, one row after the other; until the next reading.
  const char *read(const placed_tensor &tensor) {
    const int64_t size = bytes_of(tensor.type), bytes = tensor.elements() * size;
    if (tensor.row_pitch == 0)
      return read(tensor.arena, tensor.offset, bytes);
    const int64_t row = tensor.shape.back() * size, apart = tensor.row_pitch * size;
    const int64_t rows = bytes / row;
    const char *data = read(tensor.arena, tensor.offset, (rows - 1) * apart + row);
    rows_.resize(static_cast<size_t>(bytes));
    for (int64_t i = 0; i < rows; ++i)
      memcpy(rows_.data() + i * row, data + i * apart, static_cast<size_t>(row));
    return rows_.data();
  }
  // Bytes of the function that runs, or of the last one. Waits for queued work.
  const char *read(arena_kind arena, int64_t offset, int64_t bytes) {
    return run_.target.read(memory_[arena] + offset, bytes);
  }

  run &run_;
  const plan plan_;
  std::map<std::string, planned_function> functions_;
  arenas memory_ = {};
  int64_t micro_batch_ = 0;

private:
  void end_of_step() {
    if (function_ && step_ >= 0 && static_cast<size_t>(step_) < function_->made.size())
      made(step_, function_->made[static_cast<size_t>(step_)]);
  }

  std::vector<char> rows_;                     // of a tensor that has room between them
  const planned_function *function_ = nullptr; // that is running
  int step_ = -1;                              // of it
};

} // namespace trainc
