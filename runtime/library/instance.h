// SPDX-License-Identifier: Apache-2.0
//
// A compiled model in a program of somebody else: what the functions of a library's C interface do
// (interface.h). The caller has the loop, the data and the schedule; here are memory, steps
// and files. Instances share nothing, and leave the process as it is: its signals, its environment,
// the threads of its own OpenMP regions.
#pragma once

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/device.h"
#include "runtime/step/micro_batch.h"

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainc {

enum class library_kind { input, output, parameter, buffer, gradient, state };
constexpr int library_kinds = 6;

struct instance_options {
  int threads = 0; // 0: OMP_NUM_THREADS, else a thread for each core
  uint64_t seed = 0;
  int64_t micro_batches = 1; // forward and backward passes for each update
  bool mean_per_batch = false;
  bool forward_only = false; // no memory for gradients and states
  std::string folder;        // of the model's files; empty: the library's
  bool no_files = false;     // parameters begin as zeros
  host_program host;         // memory for the arenas; of a GPU its number and the stream
};

struct instance_step {
  double loss;          // mean over the labels that count
  double gradient_norm; // before clipping
  bool applied;         // else loss or gradient were not finite, and nothing has changed
};

class library_instance {
public:
  // Throws `failure`.
  library_instance(const program &program, const instance_options &options);

  // What memory of the caller's must have for the arenas.
  static int64_t memory_bytes(const program &program, const instance_options &options);

  // ---- tensors
  // Of one kind, in one order, the same for all instances of a program.
  std::span<const tensor_view> tensors(library_kind kind) const {
    return tensors_[static_cast<size_t>(kind)];
  }
  const tensor_view &tensor(library_kind kind, std::string_view name) const;
  // Memory of the caller's is the host's, or that of the GPU that the model computes on.
  // Gradients are those of the mean loss of the step that is complete and not yet updated with.
  void read(library_kind kind, const tensor_view &tensor, void *to);
  void write(library_kind kind, const tensor_view &tensor, const void *from);
  // Where a tensor lies, for the caller to read and write.
  char *bind(library_kind kind, const tensor_view &tensor);
  // Throws where the kind has no values now: no gradients, no states.
  void check_values(library_kind kind) const;

  void begin_call() {
    warning_.clear();
    target_.use_here();
  }

  // ---- work; what is read of a batch is in the inputs until then
  double forward_backward();
  instance_step update();
  double evaluate(); // the loss; NaN where the program has none
  // Of the last `evaluate`: the mean over what counts, and how much that is.
  weighed_mean metric(std::string_view name);
  bool is_complete() const { return done_ == options_.micro_batches; }
  // Both, of a step of one micro-batch, where what was passed before is forgotten.
  instance_step take_step();
  void discard() { done_ = 0; } // the passes since the last update

  // ---- settings of the update
  void set(std::string_view name, double value);
  double get(std::string_view name) const;

  // ---- files
  void load(const std::string &path);
  void save(const std::string &folder);
  // As PyTorch's module and optimizer have them (checkpoint/state_dict.h, module_weights.h).
  void save_state_dict(const std::string &path);
  void save_gradients(const std::string &path);
  void save_optimizer_state(const std::string &path);
  void load_state_dict(const std::string &path);
  void load_optimizer_state(const std::string &path);
  void export_model(const std::string &path);

  int64_t step() const { return position_.step; }
  int threads() const { return threads_; }
  const std::string &warning() const { return warning_; }

private:
  void collect_tensors();
  void load_initial_parameters();
  void check_trains(const char *what) const;
  void check_settings() const;
  void check_set(bool with_labels) const;
  void check_inputs(bool with_labels);
  void round_parameters();
  double pass();
  double scale_of_gradients() const;
  char *place_of_gradient(const tensor_view &tensor) const;
  void copy_scaled(void *to, const void *from, const tensor_view &tensor, double factor);
  void note_set(library_kind kind, const tensor_view &tensor);
  void warn(const std::string &text) { warning_ += (warning_.empty() ? "" : "\n") + text; }
  std::vector<char> parameters_now();
  template <typename Work> void or_as_before(const Work &work);
  template <typename Work> void with_parameters(const Work &work);
  template <typename Work> void with_states(const Work &work);
  std::string own_path(const char *name) const;
  void check_result(const std::string &path) const;
  double *setting(std::string_view name);
  double value_of(int64_t hyperparameter) const;

  const program &program_;
  instance_options options_;
  trainer_options defaults_; // what a trainer's command line says where it says nothing
  communicator ranks_;
  device target_;
  int threads_ = 0;
  std::vector<tensor_view> tensors_[library_kinds];
  bool has_parameters_ = true;
  bool has_lent_parameters_ = false;         // their addresses: the caller may write at any time
  const char *gradients_at_start_ = nullptr; // which the views of gradients have
  std::vector<const input_place *> inputs_;
  std::vector<bool> is_set_; // of the inputs, or bound
  kept_scalars kept_;
  std::vector<weighed_mean> losses_; // of the micro-batches
  int64_t done_ = 0;                 // of them
  double scale_ = 0;                 // of the loss, in the step that has begun
  double learning_rate_, clip_norm_, clip_value_;
  std::vector<std::optional<double>> hyperparameters_;
  run_position position_;
  std::string warning_; // of the last call
};

} // namespace trainc
