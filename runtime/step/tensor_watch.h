// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a training step's tensors, taken as soon as the step of the plan that makes them
// has ended: their places may belong to others afterwards.
#pragma once

#include "runtime/name_pattern.h"
#include "runtime/observe/statistics_file.h"
#include "runtime/step/plan_observer.h"

#include <optional>
#include <string>
#include <vector>

namespace trainc {

class tensor_watch final : public plan_observer {
public:
  // Of tensors whose names match; a file for each rank below `folder`. Takes its memory. Throws
  // `failure`: exit_usage where the pattern matches nothing, exit_data without a plan beside the
  // trainer, exit_disk.
  tensor_watch(run &run, const name_pattern &names, const std::string &folder);

  // Around a step of which it is told.
  void begin_step(int64_t step, const gradient_step &gradient);
  void end_step();

  // An errno, once, where the file could not be written.
  int take_error();
  const std::string &path() const { return file_->path(); }

protected:
  void entered(const char *name, const planned_function *function) override;
  void made(int step, const std::vector<planned_tensor> &tensors) override;

private:
  // A parameter, or a buffer, of the program.
  struct watched_parameter {
    std::string name;
    tensor_place place;
    std::vector<int64_t> shape; // as the module has it
    transposed_matrix matrix;
    bool is_trained, is_buffer;
    bool is_watched, is_gradient_watched, is_update_watched;
    std::vector<char> before; // the step, where its update is watched
    bool is_here = false;     // functions of this rank read it
  };

  void drop_others(const name_pattern &names);
  void add_parameters(const name_pattern &names);
  bool matches_any() const;
  void take(const planned_tensor &tensor, tensor_kind kind);
  void take_gradients();
  void take_parameters();
  double gradient_scale();

  std::vector<watched_parameter> parameters_;
  std::optional<statistics_taker> taker_;
  std::optional<statistics_file> file_;
  int64_t training_step_ = 0;
  int64_t batches_ = 1; // of a training step
  bool is_error_told_ = false;
};

} // namespace trainc
