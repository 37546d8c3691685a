// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/tensor_watch.h"

#include "runtime/files/data_types.h"

#include <algorithm>
#include <cstring>

namespace trainc {
namespace {

constexpr const char *update_function = "update";
const std::string of_gradient = "gradient of ", of_update = "update of ";

bool is_gradient(const std::string &name) { return name.rfind(of_gradient, 0) == 0; }

// What the module calls a parameter, and whether it has it transposed.
std::pair<std::string, bool> module_name(const program &program, const char *parameter) {
  for (int64_t i = 0; i < program.module_tensor_count; ++i)
    if (const export_initializer &tensor = program.module_tensors[i];
        strcmp(tensor.parameter_name, parameter) == 0)
      return {tensor.onnx_name, tensor.transposed};
  return {parameter, false};
}

} // namespace

tensor_watch::tensor_watch(run &run, const name_pattern &names, const std::string &folder)
    : run_(run) {
  const std::string plan = run.folder + "/plan/memory.json";
  add_functions(plan, names);
  add_parameters(names);
  if (!matches_any())
    throw failure(exit_usage, "option --watch: no tensor has a name that the pattern matches as a "
                              "whole\n  try: a name of " +
                                  run.folder + "/plan/memory.txt, or '.*' for all");
  taker_.emplace(most_elements());
  file_.emplace(folder + "/rank-" + std::to_string(run.ranks.rank()) + ".jsonl", run.prog,
                run.ranks.rank(), run.ranks.size());
}

void tensor_watch::add_functions(const std::string &path, const name_pattern &names) {
  for (auto &[name, planned] : read_tensor_plan(path)) {
    if (name == update_function || name == "evaluate")
      continue;
    watched_function &function = functions_[name];
    auto placed = [](const planned_tensor &tensor, tensor_kind kind) {
      return placed_tensor{{tensor.name, kind, tensor.type, tensor.shape},
                           tensor.arena,
                           tensor.offset,
                           tensor.elements()};
    };
    for (const planned_tensor &tensor : planned.arguments)
      if (tensor.arena == arena_kind::parameters)
        function.parameters.push_back(tensor.offset);
      else if (tensor.arena == arena_kind::activations && names.matches(tensor.name))
        function.inputs.push_back(placed(tensor, tensor_kind::input));
    function.made.resize(planned.made.size());
    for (size_t step = 0; step < planned.made.size(); ++step)
      for (const planned_tensor &tensor : planned.made[step])
        if (names.matches(tensor.name))
          function.made[step].push_back(placed(
              tensor, is_gradient(tensor.name) ? tensor_kind::gradient : tensor_kind::value));
  }
}

void tensor_watch::add_parameters(const name_pattern &names) {
  for (int64_t i = 0; i < run_.prog.parameter_count; ++i) {
    const parameter_place &place = run_.prog.parameters[i];
    const auto [name, is_transposed] = module_name(run_.prog, place.tensor.name);
    watched_parameter parameter = {.name = name, .place = place.tensor};
    parameter.is_buffer = place.role == parameter_role::buffer;
    parameter.is_trained = place.role == parameter_role::trained;
    parameter.is_watched = names.matches(name);
    parameter.is_gradient_watched = parameter.is_trained && names.matches(of_gradient + name);
    parameter.is_update_watched = parameter.is_trained && names.matches(of_update + name);
    parameter.shape.assign(place.tensor.shape, place.tensor.shape + place.tensor.rank);
    if (is_transposed) {
      parameter.matrix = {parameter.shape[0], parameter.shape[1]};
      std::swap(parameter.shape[0], parameter.shape[1]);
    }
    if (parameter.is_update_watched)
      parameter.before.resize(static_cast<size_t>(byte_count(place.tensor)));
    parameters_.push_back(std::move(parameter));
  }
}

bool tensor_watch::matches_any() const {
  for (const auto &[name, function] : functions_)
    if (!function.inputs.empty() || std::any_of(function.made.begin(), function.made.end(),
                                                [](const auto &made) { return !made.empty(); }))
      return true;
  return std::any_of(parameters_.begin(), parameters_.end(), [](const watched_parameter &one) {
    return one.is_watched || one.is_gradient_watched || one.is_update_watched;
  });
}

int64_t tensor_watch::most_elements() const {
  int64_t most = 1;
  for (const auto &[name, function] : functions_) {
    for (const placed_tensor &tensor : function.inputs)
      most = std::max(most, tensor.count);
    for (const auto &made : function.made)
      for (const placed_tensor &tensor : made)
        most = std::max(most, tensor.count);
  }
  for (const watched_parameter &parameter : parameters_)
    most = std::max(most, element_count(parameter.place));
  return most;
}

void tensor_watch::begin_step(int64_t step, gradient_step &gradient) {
  training_step_ = step;
  batches_ = gradient.batches_per_step();
  run_.target.observe(this);
  gradient.observe(this);
}

void tensor_watch::end_step(gradient_step &gradient) {
  run_.target.observe(nullptr);
  gradient.observe(nullptr);
  memory_ = run_.target.places();
  take_parameters();
}

int tensor_watch::take_error() {
  if (is_error_told_)
    return 0;
  is_error_told_ = file_->error() != 0;
  return file_->error();
}

void tensor_watch::enter(const char *function) {
  step_ = -1;
  auto known = functions_.find(function);
  function_ = known == functions_.end() ? nullptr : &known->second;
  if (function_) {
    for (watched_parameter &parameter : parameters_)
      parameter.is_here |= std::find(function_->parameters.begin(), function_->parameters.end(),
                                     parameter.place.offset) != function_->parameters.end();
    take(function_->inputs);
  } else if (strcmp(function, update_function) == 0) {
    take_gradients();
  }
}

void tensor_watch::begin(int step) {
  end_of_step();
  step_ = step;
}

void tensor_watch::leave() {
  end_of_step();
  step_ = -1;
}

void tensor_watch::end_of_step() {
  if (function_ && step_ >= 0 && static_cast<size_t>(step_) < function_->made.size())
    take(function_->made[static_cast<size_t>(step_)]);
}

const char *tensor_watch::read(arena_kind arena, int64_t offset, int64_t bytes) {
  return run_.target.read(memory_[arena] + offset, bytes);
}

void tensor_watch::take(const std::vector<placed_tensor> &tensors) {
  for (const placed_tensor &placed : tensors) {
    const watched_tensor &tensor = placed.tensor;
    const char *data = read(placed.arena, placed.offset, placed.count * bytes_of(tensor.type));
    file_->write(training_step_, micro_batch_, tensor, taker_->of(tensor.type, data, placed.count));
  }
}

// Sums of micro-batches, and what makes means of them.
double tensor_watch::gradient_scale() {
  const program &program = run_.prog;
  if (!program.loss_weight.name)
    return 1.0 / static_cast<double>(batches_);
  const tensor_place &totals = program.step_totals;
  return 1.0 / number_at(totals.type, read(totals.arena, totals.offset, bytes_of(totals.type)));
}

void tensor_watch::take_gradients() {
  const bool are_whole = !run_.prog.shards_gradients;
  const double scale = are_whole ? gradient_scale() : 1;
  for (watched_parameter &parameter : parameters_) {
    const tensor_place &place = parameter.place;
    if (!parameter.is_here)
      continue;
    if (parameter.is_gradient_watched && are_whole)
      file_->write(
          training_step_, -1,
          {of_gradient + parameter.name, tensor_kind::total_gradient, place.type, parameter.shape},
          taker_->of(place.type, read(arena_kind::gradients, place.offset, byte_count(place)),
                     element_count(place), scale, parameter.matrix));
    if (parameter.is_update_watched)
      memcpy(parameter.before.data(), read(place.arena, place.offset, byte_count(place)),
             parameter.before.size());
  }
}

void tensor_watch::take_parameters() {
  for (const watched_parameter &parameter : parameters_) {
    const tensor_place &place = parameter.place;
    if (!parameter.is_here || !(parameter.is_watched || parameter.is_update_watched))
      continue;
    const char *data = read(place.arena, place.offset, byte_count(place));
    const int64_t count = element_count(place);
    if (parameter.is_watched)
      file_->write(training_step_, -1,
                   {parameter.name,
                    parameter.is_buffer ? tensor_kind::buffer : tensor_kind::parameter, place.type,
                    parameter.shape},
                   taker_->of(place.type, data, count, 1, parameter.matrix));
    if (parameter.is_update_watched)
      file_->write(training_step_, -1,
                   {of_update + parameter.name, tensor_kind::update, place.type, parameter.shape},
                   taker_->of_difference(place.type, data, parameter.before.data(), count,
                                         parameter.matrix));
  }
}

} // namespace trainc
