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
    : plan_observer(run) {
  drop_others(names);
  add_parameters(names);
  if (!matches_any())
    throw failure(exit_usage, "option --watch: no tensor has a name that the pattern matches as a "
                              "whole\n  try: a name of " +
                                  run.folder + "/plan/memory.txt, or '.*' for all");
  taker_.emplace(most_elements());
  file_.emplace(folder + "/rank-" + std::to_string(run.ranks.rank()) + ".jsonl",
                run.prog.model_name, run.ranks.rank(), run.ranks.size());
}

// Parameters stay: they say which are read by the functions of this rank.
void tensor_watch::drop_others(const name_pattern &names) {
  for (const char *other : {update_function, "evaluate", "count_labels"})
    functions_.erase(other);
  for (auto &[name, function] : functions_) {
    std::erase_if(function.arguments, [&](const planned_tensor &tensor) {
      return tensor.arena != arena_kind::parameters &&
             (tensor.arena != arena_kind::activations || !names.matches(tensor.name));
    });
    for (auto &made : function.made)
      std::erase_if(made,
                    [&](const planned_tensor &tensor) { return !names.matches(tensor.name); });
  }
}

void tensor_watch::add_parameters(const name_pattern &names) {
  for (int64_t i = 0; i < run_.prog.parameter_count; ++i) {
    const parameter_place &place = run_.prog.parameters[i];
    const auto [name, is_transposed] = module_name(run_.prog, place.tensor.name);
    watched_parameter parameter;
    parameter.name = name;
    parameter.place = place.tensor;
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
  auto is_value = [](const planned_tensor &tensor) {
    return tensor.arena != arena_kind::parameters;
  };
  for (const auto &[name, function] : functions_)
    if (std::any_of(function.arguments.begin(), function.arguments.end(), is_value) ||
        std::any_of(function.made.begin(), function.made.end(),
                    [](const auto &made) { return !made.empty(); }))
      return true;
  return std::any_of(parameters_.begin(), parameters_.end(), [](const watched_parameter &one) {
    return one.is_watched || one.is_gradient_watched || one.is_update_watched;
  });
}

void tensor_watch::begin_step(int64_t step, const gradient_step &gradient) {
  training_step_ = step;
  batches_ = gradient.batches_per_step();
  // Not just before the update: ranks that share parameters update a part of them each.
  memory_ = run_.target.places();
  for (watched_parameter &parameter : parameters_)
    if (const tensor_place &place = parameter.place; parameter.is_update_watched)
      memcpy(parameter.before.data(), read(place.arena, place.offset, byte_count(place)),
             parameter.before.size());
}

void tensor_watch::end_step() {
  memory_ = run_.target.places();
  take_parameters();
}

int tensor_watch::take_error() {
  if (is_error_told_)
    return 0;
  file_->look();
  is_error_told_ = file_->error() != 0;
  return file_->error();
}

void tensor_watch::entered(const char *name, const planned_function *function) {
  if (!function)
    return strcmp(name, update_function) == 0 ? take_gradients() : void();
  for (const planned_tensor &tensor : function->arguments)
    if (tensor.arena != arena_kind::parameters)
      take(tensor, tensor_kind::input);
    else
      for (watched_parameter &parameter : parameters_)
        parameter.is_here |= parameter.place.offset == tensor.offset;
}

// Gradients of parameters are those of the step where it has one micro-batch.
void tensor_watch::made(int, const std::vector<planned_tensor> &tensors) {
  for (const planned_tensor &tensor : tensors)
    if (tensor.arena != arena_kind::gradients || batches_ > 1)
      take(tensor, is_gradient(tensor.name) ? tensor_kind::gradient : tensor_kind::value);
}

void tensor_watch::take(const planned_tensor &tensor, tensor_kind kind) {
  const int64_t count = tensor.elements();
  const char *data = read(tensor.arena, tensor.offset, count * bytes_of(tensor.type));
  file_->write(training_step_, micro_batch_, {tensor.name, kind, tensor.type, tensor.shape},
               taker_->of(tensor.type, data, count));
}

// Makes means of the sums over micro-batches.
double tensor_watch::gradient_scale() {
  if (!run_.prog.loss_weight.name)
    return 1.0 / static_cast<double>(batches_);
  const tensor_place &totals = run_.prog.step_totals; // the weight comes first
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
