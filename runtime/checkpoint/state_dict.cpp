// SPDX-License-Identifier: Apache-2.0
//
// Known weakness: the table says how a module holds the elements of a parameter, and not the axes.
// Of one with a single axis above 1 under another name, such as the scale [64, 1, 1] of a group
// norm, it is taken to have that axis alone.
#include "runtime/checkpoint/state_dict.h"

#include "runtime/checkpoint/adapters.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/quantized_weights.h"
#include "runtime/files/data_types.h"
#include "runtime/words.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

namespace trainc {
namespace {

constexpr int64_t piece_bytes = 1 << 20; // what is rearranged at once, about

// How the module has a parameter: a tensor, or one of several, that consists of these pieces.
struct module_tensor {
  std::string name;
  bool is_transposed = false;
  bool is_renamed = false;
  std::vector<const state_piece *> pieces; // empty: all elements, in the parameter's order
};

// A tensor of the file, and what it is made from.
struct written_tensor {
  tensor_view view; // as the file has it; the data are the parameter's
  module_tensor form;
  std::vector<int64_t> shape; // of the data
  std::string parameter = {};
};

// Empty: the table has no name for it.
std::vector<module_tensor> module_tensors_of(const program &program, const std::string &parameter) {
  std::vector<module_tensor> result;
  for (const export_initializer &entry : program.module_tensors)
    if (entry.parameter_name == parameter)
      result.push_back({entry.onnx_name, entry.transposed, entry.onnx_name != parameter, {}});
  for (const state_piece &piece : program.state_pieces) {
    if (piece.parameter_name != parameter)
      continue;
    if (result.empty() || result.back().name != piece.tensor_name)
      result.push_back({piece.tensor_name, false, true, {}});
    result.back().pieces.push_back(&piece);
  }
  return result;
}

// Recurrent layers have further axes: a first one of directions, which the module keeps apart.
std::vector<int64_t> shape_of_pieces(const module_tensor &form, std::vector<int64_t> shape) {
  int64_t count = 0;
  for (const state_piece *piece : form.pieces)
    count += piece->count;
  shape.erase(shape.begin());
  shape[0] = count / elements_of({shape.begin() + 1, shape.end()});
  return shape;
}

std::vector<int64_t> shape_in_module(const module_tensor &form, const std::vector<int64_t> &shape) {
  if (!form.pieces.empty())
    return shape_of_pieces(form, shape);
  if (form.is_transposed)
    return {shape.rbegin(), shape.rend()};
  const auto above_one = [](int64_t size) { return size > 1; };
  if (form.is_renamed && std::count_if(shape.begin(), shape.end(), above_one) == 1)
    return {elements_of(shape)};
  return shape;
}

written_tensor written(std::string name, const tensor_view &from, const module_tensor &form) {
  tensor_view view = from;
  view.name = std::move(name);
  view.shape = shape_in_module(form, from.shape);
  view.bytes = elements_of(view.shape) * bytes_of(from.type);
  return {std::move(view), form, from.shape, from.name};
}

void write_transposed(output_file &file, const written_tensor &tensor) {
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1],
                width = bytes_of(tensor.view.type);
  const int64_t at_once = std::clamp<int64_t>(piece_bytes / std::max<int64_t>(rows * width, 1), 1,
                                              std::max<int64_t>(columns, 1));
  std::vector<char> turned(static_cast<size_t>(at_once * rows * width));
  for (int64_t first = 0; first < columns; first += at_once) {
    const int64_t count = std::min(at_once, columns - first);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < count; ++i)
        memcpy(turned.data() + (i * rows + row) * width,
               tensor.view.data + (row * columns + first + i) * width, static_cast<size_t>(width));
    file.write(turned.data(), count * rows * width);
  }
}

void write_pieces(output_file &file, const written_tensor &tensor) {
  const int64_t width = bytes_of(tensor.view.type);
  std::vector<char> whole(static_cast<size_t>(tensor.view.bytes));
  for (const state_piece *piece : tensor.form.pieces)
    memcpy(whole.data() + piece->from * width, tensor.view.data + piece->to * width,
           static_cast<size_t>(piece->count * width));
  file.write(whole.data(), tensor.view.bytes);
}

void write_tensors(output_file &file, const std::vector<written_tensor> &tensors,
                   std::map<std::string, std::string> metadata, const other_values &others = {}) {
  std::vector<tensor_view> views;
  views.reserve(tensors.size());
  for (const written_tensor &tensor : tensors)
    views.push_back(tensor.view);
  metadata.emplace("format", "pt");
  file.write(safetensors_header(views, metadata));
  for (written_tensor tensor : tensors) {
    std::vector<char> values = others ? others(tensor.parameter) : std::vector<char>();
    if (!values.empty())
      tensor.view.data = values.data();
    if (!tensor.form.pieces.empty())
      write_pieces(file, tensor);
    else if (tensor.form.is_transposed)
      write_transposed(file, tensor);
    else
      file.write(tensor.view.data, tensor.view.bytes);
  }
}

const tensor_place &place_of(const program &program, const std::string &parameter) {
  for (const parameter_place &place : program.parameters)
    if (place.tensor.name == parameter)
      return place.tensor;
  throw failure(exit_internal,
                "a state of the optimizer is of '" + parameter + "', which is not a parameter");
}

constexpr char slot_of_rows[] = "row_var", slot_of_columns[] = "col_var";

bool is_of_matrix(const std::string &slot) {
  return slot == slot_of_rows || slot == slot_of_columns;
}

bool has_other_matrices(const module_tensor &form, const std::vector<int64_t> &shape) {
  return !form.is_transposed && shape_in_module(form, shape) != shape;
}

class optimizer_tensors {
public:
  explicit optimizer_tensors(const program &program, const float *updates)
      : program_(program), updates_(updates) {}

  void add(const tensor_view &state) {
    const auto [slot, parameter] = state_name_of(state.name);
    const tensor_place &place = place_of(program_, parameter);
    const std::vector<int64_t> shape = shape_of(place);
    const bool follows_elements = state.shape == shape && !is_of_matrix(slot);
    std::vector<module_tensor> forms = module_tensors_of(program_, parameter);
    if (forms.empty())
      forms.push_back({parameter, false, false, {}});
    for (const module_tensor &form : forms) {
      if (!follows_elements && has_other_matrices(form, shape)) {
        if (std::ranges::find(own_, parameter) == own_.end())
          own_.push_back(parameter);
        add_as(state, slot, {parameter, false, false, {}});
        return;
      }
      add_as(state, slot, form);
    }
  }
  const std::vector<written_tensor> &tensors() const { return tensors_; }
  const std::vector<std::string> &own() const { return own_; } // parameters in our own layout

private:
  void add_as(const tensor_view &state, const std::string &slot, const module_tensor &form) {
    const std::string start = "state." + form.name + ".";
    if (updates_ && names_.insert(start + "step").second)
      tensors_.push_back({{start + "step",
                           data_type::f32,
                           {},
                           const_cast<char *>(reinterpret_cast<const char *>(updates_)),
                           sizeof *updates_},
                          {},
                          {}});
    const std::string name = start + slot_in_module(slot, form.is_transposed);
    if (names_.insert(name).second) // the table has a name twice where the exporter tied it
      tensors_.push_back(written(name, state, form));
  }

  const program &program_;
  const float *updates_;
  std::set<std::string> names_; // of the tensors
  std::vector<written_tensor> tensors_;
  std::vector<std::string> own_;
};

} // namespace

state_name state_name_of(const std::string &name) {
  const size_t begin = name.find('/') + 1, end = name.find('/', begin);
  return {name.substr(begin, end - begin), name.substr(end + 1)};
}

std::string slot_in_module(const std::string &slot, bool is_transposed) {
  if (!is_transposed || !is_of_matrix(slot))
    return slot;
  return slot == slot_of_rows ? slot_of_columns : slot_of_rows;
}

void write_module_tensors(const program &program, const std::vector<tensor_view> &values,
                          output_file &file, const warning &warn, const other_values &others) {
  std::vector<written_tensor> tensors;
  std::vector<std::string> nameless;
  std::set<std::string> names;
  for (const tensor_view &parameter : values) {
    std::vector<module_tensor> forms = module_tensors_of(program, parameter.name);
    if (forms.empty()) {
      nameless.push_back(parameter.name);
      forms.push_back({parameter.name, false, false, {}});
    }
    for (const module_tensor &form : forms)
      if (names.insert(form.name).second)
        tensors.push_back(written(form.name, parameter, form));
  }
  write_tensors(file, tensors, {}, others);
  if (!nameless.empty())
    warn("state dict: under their ONNX names, since the module's are not known: " +
         first_of(nameless));
}

void write_state_dict(const program &program, const arenas &arenas, output_file &file,
                      const warning &warn) {
  std::vector<tensor_view> parameters = parameter_tensors(program, arenas);
  std::erase_if(parameters, [&](const tensor_view &tensor) {
    return is_of_adapter(program, tensor.name) || is_part_of_quantized(program, tensor.name);
  });
  for (tensor_view &tensor : parameters)
    if (has_merged_values(program, tensor.name)) {
      if (const quantized_weight *form = quantized_form(program, tensor.name))
        tensor.shape = shape_of(*form);
      const int64_t elements = elements_of(tensor.shape);
      tensor.type = type_of_merged(tensor.type);
      tensor.bytes = elements * bytes_of(tensor.type);
    }
  write_module_tensors(program, parameters, file, warn, [&](const std::string &parameter) {
    return merged_values(program, arenas, parameter);
  });
  std::vector<std::string> constants;
  for (const state_constant &constant : program.state_constants)
    constants.emplace_back(constant.name);
  if (!constants.empty())
    warn("state dict: without what is a constant of the program: " + first_of(constants) +
         "\n  try: load_state_dict(..., strict=False), which leaves them as they are");
}

void check_has_numbers(const std::vector<tensor_view> &states) {
  for (const tensor_view &state : states)
    if (state.type == data_type::i8 || state.type == data_type::u8)
      throw failure(exit_usage, "optimizer state: kept in 8 bits (" + state.name +
                                    "), which PyTorch's optimizers do not read\n  try: a program "
                                    "of trainc --state-type f32 or bf16");
}

void write_optimizer_state(const program &program, const std::vector<tensor_view> &states,
                           int64_t updates, output_file &file, const warning &warn) {
  check_has_numbers(states);
  const auto step = static_cast<float>(updates); // as PyTorch counts them
  std::string optimizer = program.optimizer_name;
  optimizer = optimizer.substr(0, optimizer.find('+')); // its name is without a moving average
  const bool counts = optimizer != "sgd";
  optimizer_tensors tensors(program, counts ? &step : nullptr);
  for (const tensor_view &state : states)
    tensors.add(state);
  write_tensors(file, tensors.tensors(), {{"optimizer", optimizer}});
  if (!tensors.own().empty())
    warn("optimizer state: in the layout of the program, since the module's is not known: " +
         first_of(tensors.own()));
}

} // namespace trainc
