// SPDX-License-Identifier: Apache-2.0
//
// A training step's tensors, shown as soon as the step of the plan that makes them has ended: their
// places may belong to others afterwards.
#pragma once

#include "runtime/name_pattern.h"
#include "runtime/observe/statistics_file.h"
#include "runtime/step/plan_observer.h"

#include <optional>
#include <string>
#include <vector>

namespace trainc {

// Elements in the host's memory: those at `data`, times `scale`, or what they are more than those
// `before`.
struct watched_values {
  int64_t step, micro_batch; // the latter below 0: of the step as a whole
  watched_tensor tensor;
  const char *data, *before = nullptr;
  double scale = 1;
  transposed_matrix matrix = {};    // how they lie in memory
  int64_t parameter = -1;           // its number in the program, of what belongs to one
  bool has_several_batches = false; // the step

  tensor_statistics statistics(statistics_taker &taker) const;
};

// What the module calls a parameter, and whether it has it transposed.
std::pair<std::string, bool> module_name(const program &program, const char *parameter);

class tensor_sink {
public:
  virtual ~tensor_sink() = default;
  virtual void take(const watched_values &values, statistics_taker &taker) = 0;
};

enum class watched_kinds { all, of_parameters };

class tensor_watch final : public plan_observer {
public:
  // Watches tensors whose names match. Takes its memory. Throws `failure`: exit_usage where the
  // pattern of the option matches nothing, exit_data without a plan beside the trainer.
  tensor_watch(run &run, const name_pattern &names, const char *option,
               watched_kinds kinds = watched_kinds::all);
  void show_to(tensor_sink *sink) { sink_ = sink; }

  // Around a step that is watched.
  void begin_step(int64_t step, int64_t batches);
  void end_step();

protected:
  void entered(const char *name, const planned_function *function) override;
  void made(int step, const std::vector<placed_tensor> &tensors) override;

private:
  // A parameter, or a buffer, of the program.
  struct watched_parameter {
    std::string name, gradient, update; // what these are called
    tensor_place place;
    std::vector<int64_t> shape; // as the module has it
    transposed_matrix matrix;
    bool is_trained, is_buffer;
    bool is_watched, is_gradient_watched, is_update_watched;
    std::vector<char> before; // the step, where its update is watched
    bool is_here = false;     // functions of this rank read it
  };

  void drop_others(const name_pattern &names, watched_kinds kinds);
  void add_parameters(const name_pattern &names);
  bool matches_any() const;
  void take(const placed_tensor &tensor, tensor_kind kind);
  void take_gradients();
  void take_parameters();
  double gradient_scale();
  double loss_scale();

  std::vector<watched_parameter> parameters_;
  std::optional<statistics_taker> taker_;
  tensor_sink *sink_ = nullptr;
  int64_t training_step_ = 0;
  int64_t batches_ = 1; // of a training step
};

} // namespace trainc
