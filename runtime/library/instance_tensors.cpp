// SPDX-License-Identifier: Apache-2.0
//
// What a caller reads and writes of an instance, by name.
#include "runtime/library/instance.h"

#include "runtime/failure.h"

#include <cstring>

namespace trainc {
namespace {

const char *name_of_kind(library_kind kind) {
  constexpr const char *names[library_kinds] = {"input",  "output",   "parameter",
                                                "buffer", "gradient", "state"};
  return names[static_cast<int>(kind)];
}

// Gradients are sums over micro-batches in memory, and times the scale of the loss.
void scale_values(data_type type, void *values, int64_t bytes, double factor) {
  const auto multiply = [&](auto *numbers, auto by) {
    for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof *numbers); ++i)
      numbers[i] *= by;
  };
  if (type == data_type::f64)
    multiply(static_cast<double *>(values), factor);
  else
    multiply(static_cast<float *>(values), static_cast<float>(factor));
}

} // namespace

void library_instance::collect_tensors() {
  const arenas &places = target_.places();
  gradients_at_start_ = places[arena_kind::gradients];
  const auto add = [&](library_kind kind, const tensor_place &tensor, arena_kind arena) {
    tensors_[static_cast<size_t>(kind)].push_back(
        view_of(tensor, tensor.name, places[arena] ? places[arena] + tensor.offset : nullptr));
  };
  for (int64_t i = 0; i < program_.input_count; ++i) {
    inputs_.push_back(&program_.inputs[i]);
    add(library_kind::input, program_.inputs[i].tensor, program_.inputs[i].tensor.arena);
  }
  for (int64_t i = 0; i < program_.output_count; ++i)
    add(library_kind::output, program_.outputs[i], program_.outputs[i].arena);
  for (int64_t i = 0; i < program_.parameter_count; ++i) {
    const parameter_place &parameter = program_.parameters[i];
    const bool is_buffer = parameter.role == parameter_role::buffer;
    add(is_buffer ? library_kind::buffer : library_kind::parameter, parameter.tensor,
        arena_kind::parameters);
    if (parameter.role == parameter_role::trained)
      add(library_kind::gradient, parameter.tensor, arena_kind::gradients);
  }
  if (!places[arena_kind::optimizer_state])
    return;
  std::vector<tensor_view> states = state_tensors(program_, places);
  tensors_[static_cast<size_t>(library_kind::state)].assign(
      states.begin() + program_.parameter_count, states.end());
}

const tensor_view &library_instance::tensor(library_kind kind, std::string_view name) const {
  for (const tensor_view &each : tensors(kind))
    if (each.name == name)
      return each;
  std::string known;
  for (const tensor_view &each : tensors(kind))
    known += (known.empty() ? "" : ", ") + each.name;
  constexpr size_t most_shown = 200;
  if (known.size() > most_shown)
    known = known.substr(0, known.rfind(',', most_shown)) + ", ...";
  throw failure(exit_usage, std::string(name_of_kind(kind)) + " '" + std::string(name) +
                                "': there is " +
                                (known.empty() ? "none of this kind" : "none among " + known) +
                                "\n  try: a name that the description has");
}

double library_instance::scale_of_gradients() const {
  double weight = 0;
  for (const weighed_mean &loss : losses_)
    weight += loss.weight;
  return weight * (program_.loss_scale_offset >= 0 ? scale_ : 1);
}

// The arena that has the sum changes from step to step; a view has the place at its beginning.
char *library_instance::place_of_gradient(const tensor_view &tensor) const {
  return target_.places()[arena_kind::gradients] + (tensor.data - gradients_at_start_);
}

void library_instance::check_values(library_kind kind) const {
  if (kind != library_kind::gradient)
    return;
  check_trains("gradients");
  if (!is_complete())
    throw failure(exit_usage,
                  "gradients: there are none between an update and the last micro-batch "
                  "of the next step\n  try: between forward_backward and update");
}

void library_instance::read(library_kind kind, const tensor_view &tensor, void *to) const {
  check_values(kind);
  const size_t bytes = static_cast<size_t>(tensor.bytes);
  if (kind != library_kind::gradient) {
    memcpy(to, tensor.data, bytes);
    return;
  }
  memcpy(to, place_of_gradient(tensor), bytes);
  if (const double scale = scale_of_gradients(); scale != 1)
    scale_values(tensor.type, to, tensor.bytes, 1 / scale);
}

void library_instance::write(library_kind kind, const tensor_view &tensor, const void *from) {
  check_values(kind);
  const size_t bytes = static_cast<size_t>(tensor.bytes);
  if (kind != library_kind::gradient) {
    memcpy(tensor.data, from, bytes);
    return;
  }
  char *place = place_of_gradient(tensor);
  memcpy(place, from, bytes);
  if (const double scale = scale_of_gradients(); scale != 1)
    scale_values(tensor.type, place, tensor.bytes, scale);
}

} // namespace trainc
