// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a training step's tensors, taken as soon as the step of the plan that makes them
// has ended: their places may belong to others afterwards.
#pragma once

#include "runtime/name_pattern.h"
#include "runtime/observe/statistics_file.h"
#include "runtime/observe/tensor_plan.h"
#include "runtime/step/gradient_step.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

class tensor_watch final : public step_clock, public action_observer {
public:
  // Of tensors whose names match; a file for each rank below `folder`. Takes its memory. Throws
  // `failure`: exit_usage where the pattern matches nothing, exit_data without a plan beside the
  // trainer, exit_disk.
  tensor_watch(run &run, const name_pattern &names, const std::string &folder);

  // Around a step that is watched: all that the device and `gradient` do is told to this watch.
  void begin_step(int64_t step, gradient_step &gradient);
  void end_step(gradient_step &gradient);

  // An errno, once, where the file could not be written.
  int take_error();
  const std::string &path() const { return file_->path(); }

  void uses(const arenas &memory) override { memory_ = memory; }
  void enter(const char *function) override;
  void begin(int step) override;
  void leave() override;
  void begins(const stage_action &action) override { micro_batch_ = action.micro_batch; }
  void ends() override {}

private:
  struct placed_tensor {
    watched_tensor tensor;
    arena_kind arena;
    int64_t offset, count;
  };
  struct watched_function {
    std::vector<placed_tensor> inputs;
    std::vector<std::vector<placed_tensor>> made; // by step
    std::vector<int64_t> parameters;              // offsets of those that it reads
  };
  // A parameter, or a buffer, of the program.
  struct watched_parameter {
    std::string name;
    tensor_place place;
    bool is_trained, is_buffer;
    bool is_watched, is_gradient_watched, is_update_watched;
    std::vector<int64_t> shape; // as the module has it
    transposed_matrix matrix;
    std::vector<char> before; // the step, where its update is watched
    bool is_here = false;     // functions of this rank read it
  };

  void add_functions(const std::string &path, const name_pattern &names);
  void add_parameters(const name_pattern &names);
  bool matches_any() const;
  int64_t most_elements() const;
  void take(const std::vector<placed_tensor> &tensors);
  void end_of_step();
  void take_gradients();
  void take_parameters();
  const char *read(arena_kind arena, int64_t offset, int64_t bytes);
  double gradient_scale();

  run &run_;
  std::map<std::string, watched_function> functions_;
  std::vector<watched_parameter> parameters_;
  std::optional<statistics_taker> taker_;
  std::optional<statistics_file> file_;
  arenas memory_ = {};
  const watched_function *function_ = nullptr; // that is running
  int64_t training_step_ = 0, micro_batch_ = 0;
  int64_t batches_ = 1; // of a training step
  int step_ = -1;       // of the function
  bool is_error_told_ = false;
};

} // namespace trainc
