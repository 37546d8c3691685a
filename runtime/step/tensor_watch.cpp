// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/tensor_watch.h"

#include "runtime/files/data_types.h"

#include <algorithm>
#include <cstring>

namespace trainc {
namespace {

constexpr const char *update_function = "update";
const std::string of_update = "update of ";

} // namespace

std::pair<std::string, bool> module_name(const program &program, const char *parameter) {
  for (const export_initializer &tensor : program.module_tensors)
    if (strcmp(tensor.parameter_name, parameter) == 0)
      return {tensor.onnx_name, tensor.transposed};
  return {parameter, false};
}

tensor_statistics watched_values::statistics(statistics_taker &taker) const {
  int64_t count = 1;
  for (int64_t size : tensor.shape)
    count *= size;
  return before ? taker.of_difference(tensor.type, data, before, count, matrix)
                : taker.of(tensor.type, data, count, scale, matrix);
}

tensor_watch::tensor_watch(run &run, const name_pattern &names, const char *option,
                           watched_kinds kinds)
    : plan_observer(run) {
  drop_others(names, kinds);
  add_parameters(names);
  if (!matches_any())
    throw failure(exit_usage, std::string("option --") + option +
                                  ": no tensor has a name that the pattern matches as a whole\n  "
                                  "try: a name that trainc-inspect " +
                                  run.folder + " memory shows, or '.*' for all");
  taker_.emplace(most_elements());
}

// Parameters stay: they say which are read by the functions of this rank.
void tensor_watch::drop_others(const name_pattern &names, watched_kinds kinds) {
  auto is_other = [&](const placed_tensor &tensor) {
    return kinds == watched_kinds::of_parameters || !names.matches(tensor.name);
  };
  for (const char *other : {update_function, "evaluate", "count_labels", "round_parameters"})
    functions_.erase(other);
  for (auto &[name, function] : functions_) {
    std::erase_if(function.arguments, [&](const placed_tensor &tensor) {
      return tensor.arena != arena_kind::parameters &&
             (tensor.arena != arena_kind::activations || is_other(tensor));
    });
    for (auto &made : function.made)
      std::erase_if(made, is_other);
  }
}

void tensor_watch::add_parameters(const name_pattern &names) {
  for (const parameter_place &place : run_.prog.parameters) {
    const auto [name, is_transposed] = module_name(run_.prog, place.tensor.name);
    watched_parameter parameter;
    parameter.name = name;
    parameter.gradient = of_gradient + name;
    parameter.update = of_update + name;
    parameter.place = place.tensor;
    parameter.is_buffer = place.role == parameter_role::buffer;
    parameter.is_trained = place.role == parameter_role::trained;
    parameter.is_watched = names.matches(name);
    parameter.is_gradient_watched = parameter.is_trained && names.matches(parameter.gradient);
    parameter.is_update_watched = parameter.is_trained && names.matches(parameter.update);
    parameter.shape = shape_of(place.tensor);
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
  auto is_value = [](const placed_tensor &tensor) {
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

void tensor_watch::begin_step(int64_t step, int64_t batches) {
  training_step_ = step;
  batches_ = batches;
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

void tensor_watch::entered(const char *name, const planned_function *function) {
  if (!function)
    return strcmp(name, update_function) == 0 ? take_gradients() : void();
  for (const placed_tensor &tensor : function->arguments)
    if (tensor.arena != arena_kind::parameters)
      take(tensor, tensor_kind::input);
    else
      for (watched_parameter &parameter : parameters_)
        parameter.is_here |= parameter.place.offset == tensor.offset;
}

// Gradients of parameters are those of the step where it has one micro-batch.
void tensor_watch::made(int, const std::vector<placed_tensor> &tensors) {
  for (const placed_tensor &tensor : tensors)
    if (tensor.arena != arena_kind::gradients || batches_ > 1)
      take(tensor, is_gradient(tensor.name) ? tensor_kind::gradient : tensor_kind::value);
}

void tensor_watch::take(const placed_tensor &tensor, tensor_kind kind) {
  sink_->take({.step = training_step_,
               .micro_batch = micro_batch_,
               .tensor = {tensor.name, kind, tensor.type, tensor.shape},
               .data = read(tensor),
               .scale = tensor.arena == arena_kind::gradients ? 1 / loss_scale() : 1,
               .has_several_batches = batches_ > 1},
              *taker_);
}

// What the gradients of the step are times those of the loss.
double tensor_watch::loss_scale() {
  const int64_t offset = run_.prog.loss_scale_offset;
  return offset < 0
             ? 1
             : number_at(data_type::f64, read(arena_kind::workspace, offset, sizeof(double)));
}

// Makes means of the sums over micro-batches.
double tensor_watch::gradient_scale() {
  double batches = static_cast<double>(batches_);
  if (const tensor_place &totals = run_.prog.step_totals; run_.prog.loss_weight.name)
    batches = number_at(totals.type, // the weight comes first
                        read(totals.arena, totals.offset, bytes_of(totals.type)));
  return 1.0 / (batches * loss_scale());
}

void tensor_watch::take_gradients() {
  if (run_.prog.shards_gradients || run_.prog.updates_in_backward) // nothing has them whole
    return;
  const double scale = gradient_scale();
  for (const watched_parameter &parameter : parameters_) {
    const tensor_place &place = parameter.place;
    if (parameter.is_here && parameter.is_gradient_watched)
      sink_->take(
          {.step = training_step_,
           .micro_batch = -1,
           .tensor = {parameter.gradient, tensor_kind::total_gradient, place.type, parameter.shape},
           .data = read(arena_kind::gradients, place.offset, byte_count(place)),
           .scale = scale,
           .matrix = parameter.matrix,
           .parameter = &parameter - parameters_.data()},
          *taker_);
  }
}

void tensor_watch::take_parameters() {
  for (const watched_parameter &parameter : parameters_) {
    const tensor_place &place = parameter.place;
    if (!parameter.is_here || !(parameter.is_watched || parameter.is_update_watched))
      continue;
    const char *data = read(place.arena, place.offset, byte_count(place));
    auto show = [&](const std::string &name, tensor_kind kind, const char *before) {
      sink_->take({.step = training_step_,
                   .micro_batch = -1,
                   .tensor = {name, kind, place.type, parameter.shape},
                   .data = data,
                   .before = before,
                   .matrix = parameter.matrix,
                   .parameter = &parameter - parameters_.data()},
                  *taker_);
    };
    if (parameter.is_watched)
      show(parameter.name, parameter.is_buffer ? tensor_kind::buffer : tensor_kind::parameter,
           nullptr);
    if (parameter.is_update_watched)
      show(parameter.update, tensor_kind::update, parameter.before.data());
  }
}

} // namespace trainc
