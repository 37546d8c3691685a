// SPDX-License-Identifier: Apache-2.0
//
// What a caller reads and writes of an instance, by name.
#include "runtime/library/instance.h"

#include "runtime/failure.h"

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
  for (const input_place &input : program_.inputs) {
    inputs_.push_back(&input);
    add(library_kind::input, input.tensor, input.tensor.arena);
  }
  is_set_.resize(inputs_.size());
  for (const tensor_place &output : program_.outputs)
    add(library_kind::output, output, output.arena);
  for (const parameter_place &parameter : program_.parameters) {
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
      states.begin() + std::ssize(program_.parameters), states.end());
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

void library_instance::read(library_kind kind, const tensor_view &tensor, void *to) {
  check_values(kind);
  if (kind != library_kind::gradient)
    return target_.copy(to, tensor.data, tensor.bytes);
  const double scale = scale_of_gradients();
  copy_scaled(to, place_of_gradient(tensor), tensor, 1 / scale);
}

// Either may be where the host cannot follow.
void library_instance::copy_scaled(void *to, const void *from, const tensor_view &tensor,
                                   double factor) {
  if (factor == 1)
    return target_.copy(to, from, tensor.bytes);
  std::vector<char> values(static_cast<size_t>(tensor.bytes));
  target_.copy(values.data(), from, tensor.bytes);
  scale_values(tensor.type, values.data(), tensor.bytes, factor);
  target_.copy(to, values.data(), tensor.bytes);
}

char *library_instance::bind(library_kind kind, const tensor_view &tensor) {
  if (kind == library_kind::gradient)
    throw failure(exit_usage, "data: gradients move from step to step\n  try: read");
  note_set(kind, tensor);
  has_lent_parameters_ |= kind == library_kind::parameter;
  return tensor.data;
}

void library_instance::note_set(library_kind kind, const tensor_view &tensor) {
  if (kind == library_kind::input)
    is_set_[static_cast<size_t>(&tensor - tensors(kind).data())] = true;
  has_parameters_ |= kind == library_kind::parameter;
}

void library_instance::write(library_kind kind, const tensor_view &tensor, const void *from) {
  check_values(kind);
  if (kind == library_kind::gradient)
    return copy_scaled(place_of_gradient(tensor), from, tensor, scale_of_gradients());
  target_.copy(tensor.data, from, tensor.bytes);
  note_set(kind, tensor);
}

} // namespace trainc
