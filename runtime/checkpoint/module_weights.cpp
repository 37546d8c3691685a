// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/module_weights.h"

#include "runtime/checkpoint/adapters.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/state_dict.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/files/conversion.h"
#include "runtime/files/crc32c.h"
#include "runtime/files/data_types.h"
#include "runtime/host_access.h"
#include "runtime/words.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace trainc {
namespace {

// Where values go, and who is told what.
struct reading {
  const program &prog;
  arena_access &target;
  const warning &warn;
};

// By whose name a file has a parameter.
enum class name_origin { own, module, copy };

// A tensor of a file that a parameter has its values from.
struct tensor_source {
  std::string name; // in the file
  name_origin origin = name_origin::own;
  bool is_transposed = false;
};

// What the file has of a parameter: one tensor or several that are equal, or else pieces of some.
struct parameter_source {
  std::vector<tensor_source> tensors;
  std::vector<const state_piece *> pieces;
};

using source_list = std::map<std::string, parameter_source>; // by parameter

// By its own name, the one that the module has for it, or that of a copy which the exporter wrote.
source_list sources_in(const weights &file, const program &program) {
  source_list sources;
  for (const parameter_place &parameter : program.parameters)
    if (const char *name = parameter.tensor.name; file.find(name))
      sources[name].tensors.push_back({name});
  auto add = [&](std::span<const export_initializer> entries, name_origin origin) {
    for (const export_initializer &entry : entries) {
      if (!file.find(entry.onnx_name))
        continue;
      std::vector<tensor_source> &tensors = sources[entry.parameter_name].tensors;
      if (std::none_of(tensors.begin(), tensors.end(),
                       [&](const tensor_source &one) { return one.name == entry.onnx_name; }))
        tensors.push_back({entry.onnx_name, origin, entry.transposed});
    }
  };
  add(program.module_tensors, name_origin::module);
  add(program.exports, name_origin::copy);
  std::set<std::string> lacking; // parameters that the file has in part
  for (const state_piece &piece : program.state_pieces)
    if (file.find(piece.tensor_name))
      sources[piece.parameter_name].pieces.push_back(&piece);
    else
      lacking.insert(piece.parameter_name);
  for (const std::string &name : lacking)
    if (const auto found = sources.find(name); found != sources.end()) {
      found->second.pieces.clear();
      if (found->second.tensors.empty())
        sources.erase(found);
    }
  return sources;
}

// A tensor of the file with the elements of `like`, in the shape that it has there.
std::vector<char> values_in(weights &file, const std::string &name, const tensor_view &like,
                            const std::vector<int64_t> &shape) {
  const std::vector<int64_t> &stored = file.find(name)->shape;
  const int64_t count = elements_of(shape);
  tensor_view view = like;
  view.name = name;
  view.shape = elements_of(stored) == count ? stored : shape;
  view.bytes = count * bytes_of(like.type);
  std::vector<char> values(static_cast<size_t>(view.bytes));
  view.data = values.data();
  host_access memory;
  file.read(view, memory);
  return values;
}

// In the parameter's order: of what the module or a copy has transposed, or with other axes.
std::vector<char> values_of(weights &file, const tensor_view &parameter,
                            const tensor_source &from) {
  if (!from.is_transposed)
    return values_in(file, from.name, parameter, parameter.shape);
  const auto columns = static_cast<size_t>(parameter.shape[1]),
             rows = static_cast<size_t>(parameter.shape[0]),
             width = static_cast<size_t>(bytes_of(parameter.type));
  const std::vector<int64_t> &stored = file.find(from.name)->shape;
  const std::vector<int64_t> turned = {parameter.shape[1], parameter.shape[0]};
  const std::vector<char> values = values_in(file, from.name, parameter, turned);
  if (stored != turned)
    throw failure(exit_checkpoint, file.path() + ": tensor '" + from.name + "' has shape " +
                                       shape_text(stored) + "; the model has " +
                                       shape_text(turned));
  std::vector<char> result(values.size());
  for (size_t i = 0; i < rows * columns; ++i)
    memcpy(&result[i * width], &values[(i % columns * rows + i / columns) * width], width);
  return result;
}

std::string same_name(const std::string &tensor) { return tensor; }

// Such as the gates of a recurrent layer, of as many tensors as the module has. `name_in_file`: of
// one of them.
std::vector<char>
values_of(weights &file, const tensor_view &parameter,
          const std::vector<const state_piece *> &pieces,
          const std::function<std::string(const std::string &)> &name_in_file = same_name) {
  const int64_t width = bytes_of(parameter.type);
  std::map<std::string, int64_t> elements; // by tensor
  for (const state_piece *piece : pieces)
    elements[piece->tensor_name] += piece->count;
  std::vector<char> result(static_cast<size_t>(parameter.bytes));
  for (const auto &[name, count] : elements) {
    const std::vector<char> values = values_in(file, name_in_file(name), parameter, {count});
    for (const state_piece *piece : pieces)
      if (piece->tensor_name == name)
        memcpy(&result[static_cast<size_t>(piece->to * width)],
               &values[static_cast<size_t>(piece->from * width)],
               static_cast<size_t>(piece->count * width));
  }
  return result;
}

void put_values(const reading &into, const tensor_view &parameter,
                const std::vector<char> &values) {
  in_transfers(parameter.bytes, [&](int64_t begin, int64_t bytes) {
    into.target.write(parameter.data + begin, bytes, [&](char *host) {
      memcpy(host, values.data() + begin, static_cast<size_t>(bytes));
    });
  });
}

// As a checkpoint asks for it: else every step would be skipped.
bool is_sound(const reading &into, size_t number, const tensor_view &parameter) {
  bool sound = true;
  in_transfers(parameter.bytes, [&](int64_t begin, int64_t bytes) {
    sound &= is_sound(into.prog, number, parameter.type,
                      into.target.read(parameter.data + begin, bytes), bytes);
  });
  return sound;
}

void add_to(std::string &list, const std::string &text) {
  list += (list.empty() ? "" : ", ") + text;
}

// A parameter that the file has under several names, as tied weights are, has one value.
void check_equal(weights &file, const tensor_view &parameter,
                 const std::vector<tensor_source> &tensors) {
  if (tensors.size() < 2)
    return;
  const std::vector<char> first = values_of(file, parameter, tensors[0]);
  for (size_t i = 1; i < tensors.size(); ++i)
    if (values_of(file, parameter, tensors[i]) != first)
      throw failure(exit_checkpoint,
                    file.path() + ": '" + tensors[0].name + "' and '" + tensors[i].name +
                        "' have other values, and are one parameter of the model, '" +
                        parameter.name +
                        "'\n  try: an export of the module with these values, in which they are "
                        "two; or a file without one of them");
}

// The bytes of a tensor as the model has them that is a constant of so many; of floats of another
// type those that they become. Empty where it has another size.
std::vector<char> bytes_as(const weights &file, const stored_tensor &stored,
                           const state_constant &constant) {
  const std::optional<file_type> type = data_type_of_stored(stored.type);
  if (stored.bytes == constant.bytes)
    return file.bytes_of(constant.name);
  if (!type || !is_float(*type))
    return {};
  const int64_t count = stored.bytes / bytes_of(*type);
  for (const data_type wanted : {data_type::f32, data_type::f64})
    if (count * bytes_of(wanted) == constant.bytes) {
      std::vector<char> converted(static_cast<size_t>(constant.bytes));
      convert(*type, file.bytes_of(constant.name).data(), wanted, converted.data(), count);
      return converted;
    }
  return {};
}

// What is compiled into the program stays as it is. Returns the constants that the file has with
// fewer digits, which may be other for that alone.
std::vector<std::string> check_constants(const weights &file, const program &program) {
  problem_list problems;
  std::vector<std::string> rounded;
  for (const state_constant &constant : program.state_constants) {
    const stored_tensor *found = file.find(constant.name);
    if (!found)
      continue;
    auto add = [&](const std::string &what) {
      problems.add(
          file.path() + ": '" + constant.name + "' has " + what +
          " than the model, of which it is a constant\n  try: trainc with an export of the "
          "module with these values");
    };
    const std::vector<char> values = bytes_as(file, *found, constant);
    if (static_cast<int64_t>(values.size()) != constant.bytes)
      add("another size");
    else if (crc32c(0, values.data(), values.size()) == constant.checksum)
      continue;
    else if (found->bytes < constant.bytes)
      rounded.push_back(constant.name);
    else
      add("other values");
  }
  problems.throw_if_any(exit_checkpoint);
  return rounded;
}

// What the file has besides; nothing of what only counts batches.
std::vector<std::string> unknown_tensors(const weights &file, const program &program,
                                         std::set<std::string> known) {
  for (const export_initializer &initializer : program.exports)
    known.insert(initializer.onnx_name);
  for (const state_constant &constant : program.state_constants)
    known.insert(constant.name);
  std::vector<std::string> others;
  for (const auto &[name, tensor] : file.tensors())
    if (!known.count(name) && !name.ends_with("num_batches_tracked") &&
        !name.starts_with(padding_prefix))
      others.push_back(without_controls(name));
  return others;
}

void warn_of_unknown(const reading &into, const std::string &path,
                     const std::vector<std::string> &others) {
  const std::string names = first_of(others);
  if (others.size() == 1)
    into.warn(path + ": " + names + " is not a parameter of the model");
  else if (!others.empty())
    into.warn(format_text("%s: %zu tensors are not parameters of the model: %s", path.c_str(),
                          others.size(), names.c_str()));
}

std::vector<std::string> names_in(const weights &file) {
  std::vector<std::string> names;
  for (const auto &[name, tensor] : file.tensors())
    names.push_back(name);
  return names;
}

// As --rename asks.
void change_names(weights &file, const std::vector<name_change> &changes) {
  for (const name_change &change : changes) {
    bool found = false;
    file.rename([&](const std::string &name) {
      std::string now = change.pattern.replaced(name, change.text);
      found |= now != name;
      return now;
    });
    if (!found)
      throw failure(exit_checkpoint,
                    file.path() + ": --rename '" + change.words +
                        "' changes no name\n  try: a pattern that is found in one of " +
                        first_of(names_in(file)));
  }
}

// All by which a file may have something of the model.
std::set<std::string> names_of_model(const program &program) {
  std::set<std::string> names;
  for (const parameter_place &parameter : program.parameters)
    names.insert(parameter.tensor.name);
  for (const export_initializer &tensor : program.module_tensors)
    names.insert(tensor.onnx_name);
  for (const export_initializer &initializer : program.exports)
    names.insert(initializer.onnx_name);
  for (const state_piece &piece : program.state_pieces)
    names.insert(piece.tensor_name);
  for (const state_constant &constant : program.state_constants)
    names.insert(constant.name);
  return names;
}

// What stands before names of one side alone, such as `bert.`.
struct name_prefix {
  std::string text;
  bool is_of_file;
  auto operator<=>(const name_prefix &) const = default;
};

// By which most of the file, or as much as most of the model, fits; nothing where there is none, or
// several do it as well, as the two halves of a siamese network.
std::optional<name_prefix> common_prefix(const std::vector<std::string> &in_file,
                                         const std::set<std::string> &of_model, size_t parameters) {
  std::map<name_prefix, size_t> fits;
  const auto count = [&](const auto &longer, const auto &others, bool is_of_file) {
    for (const std::string &name : longer)
      for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
        if (others.count(name.substr(dot + 1)))
          ++fits[{name.substr(0, dot + 1), is_of_file}];
  };
  count(in_file, of_model, /*is_of_file=*/true);
  count(of_model, std::set<std::string>(in_file.begin(), in_file.end()), /*is_of_file=*/false);
  const auto best = std::max_element(
      fits.begin(), fits.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  const size_t all = std::min(in_file.size(), parameters);
  if (best == fits.end() || 2 * best->second <= all)
    return std::nullopt;
  const auto as_good = std::count_if(fits.begin(), fits.end(),
                                     [&](const auto &one) { return one.second == best->second; });
  return as_good == 1 ? std::optional(best->first) : std::nullopt;
}

// Names that do not fit with it stay as they are.
void fit_prefix(const reading &into, weights &file) {
  const std::set<std::string> of_model = names_of_model(into.prog);
  const std::optional<name_prefix> prefix =
      common_prefix(names_in(file), of_model, into.prog.parameters.size());
  if (!prefix)
    return;
  const std::string &text = prefix->text;
  const bool is_of_file = prefix->is_of_file;
  file.rename([&](const std::string &name) {
    const std::string fitting = !is_of_file              ? text + name
                                : name.starts_with(text) ? name.substr(text.size())
                                                         : name;
    return of_model.count(fitting) ? fitting : name;
  });
  into.warn(file.path() + ": names " + (is_of_file ? "without '" : "with '") +
            without_controls(text) + "' at their beginning, which the model's " +
            (is_of_file ? "do not have" : "have"));
}

// Where no name is the model's, without the wrapper of a parallel or compiled module, and then
// without or with a beginning that the two sides do not share.
source_list sources_of(const reading &into, weights &file) {
  source_list sources = sources_in(file, into.prog);
  std::string dropped;
  while (sources.empty()) {
    const std::string wrapper = file.drop_wrapper();
    if (wrapper.empty())
      break;
    dropped += wrapper;
    sources = sources_in(file, into.prog);
  }
  if (sources.empty()) {
    fit_prefix(into, file);
    sources = sources_in(file, into.prog);
  }
  if (!dropped.empty() && !sources.empty())
    into.warn(file.path() + ": names without '" + dropped +
              "' at their beginning, as DataParallel and torch.compile put it there");
  return sources;
}

void warn_of_conversions(const reading &into, const weights &file, data_type type) {
  for (const auto &[stored, names] : file.converted())
    into.warn(file.path() + ": converted from " + stored + " to " + safetensors_name_of(type) +
              ": " + first_of({names.begin(), names.end()}));
}

} // namespace

void read_weights(const program &program, const arenas &arenas, arena_access &access,
                  const std::string &path, const warning &warn,
                  const std::vector<name_change> &changes) {
  const reading into = {program, access, warn};
  weights file(path);
  change_names(file, changes);
  // Names of adapters may be the program's own, of a module that has some.
  const bool holds_adapters =
      (!program.adapters.empty() || sources_in(file, program).empty()) && take_adapter_names(file);
  const source_list sources = sources_of(into, file);
  if (holds_adapters)
    check_adapters(file, program);
  const std::vector<tensor_view> parameters = parameter_tensors(into.prog, arenas);
  std::set<std::string> known; // a state has tied weights under each of their names
  std::string missing, of_module, of_copies, unsound;
  size_t taken = 0;
  auto take = [&](const reading &into, const tensor_view &tensor) {
    const auto &[tensors, pieces] = sources.at(tensor.name);
    check_equal(file, tensor, tensors);
    for (const tensor_source &one : tensors)
      known.insert(one.name);
    if (tensors.empty()) {
      put_values(into, tensor, values_of(file, tensor, pieces));
      std::set<std::string> names;
      for (const state_piece *piece : pieces)
        if (names.insert(piece->tensor_name).second)
          add_to(of_module, (names.size() == 1 ? "'" + tensor.name + "' from '" : "'") +
                                piece->tensor_name + "'");
      known.insert(names.begin(), names.end());
      return;
    }
    const tensor_source &from = tensors[0];
    if (from.origin == name_origin::own)
      return file.read(tensor, into.target);
    put_values(into, tensor, values_of(file, tensor, from));
    add_to(from.origin == name_origin::module ? of_module : of_copies,
           "'" + tensor.name + "' from '" + from.name + "'" +
               (from.is_transposed ? ", transposed" : ""));
  };
  const auto kept = static_cast<size_t>(kept_parameters(program));
  std::string changed; // frozen weights
  host_access memory;
  for (size_t number = 0; number < parameters.size(); ++number) {
    const tensor_view &tensor = parameters[number];
    if (!sources.count(tensor.name)) {
      if (number < kept) // a frozen weight has the values that it is to have
        add_to(missing, "'" + tensor.name + "'");
      continue;
    }
    ++taken;
    if (number < kept) {
      take(into, tensor);
      continue;
    }
    std::vector<char> values;
    const tensor_view floats = floats_beside(program, tensor, values);
    take({program, memory, warn}, floats);
    if (!has_values_of(program, arenas, tensor, values.data()))
      add_to(changed, "'" + tensor.name + "'");
  }
  if (!changed.empty())
    throw failure(exit_checkpoint,
                  path +
                      ": has other values than the program in frozen weights, which keep those "
                      "of the model's file: " +
                      changed +
                      "\n  try: trainc of a model that has these values, as export writes it; or a "
                      "file without these weights");
  for (size_t number = 0; number < kept; ++number)
    if (sources.count(parameters[number].name) && !is_sound(into, number, parameters[number]))
      add_to(unsound, "'" + parameters[number].name + "'");
  if (!unsound.empty())
    throw failure(exit_checkpoint, path + ": has numbers that are not finite in " + unsound);
  if (!of_module.empty())
    into.warn(path + ": by the names of the module: " + of_module);
  if (!of_copies.empty())
    into.warn(path + ": by the names of copies in the model's file: " + of_copies);
  if (taken == 0)
    throw failure(exit_checkpoint,
                  path + ": has none of the model's parameters\n  try: names such as '" +
                      (parameters.empty() ? "" : parameters.front().name) +
                      "'; train --rename 'PATTERN=TEXT' changes those of the file");
  if (!missing.empty())
    into.warn(format_text("%s: has %zu of %zu parameters; initial values have %s", path.c_str(),
                          taken, parameters.size(), missing.c_str()));
  if (!parameters.empty())
    warn_of_conversions(into, file, parameters.front().type);
  if (const auto rounded = check_constants(file, into.prog); !rounded.empty())
    into.warn(path + ": has constants of the model with fewer digits, which were not compared: " +
              first_of(rounded));
  warn_of_unknown(into, path, unknown_tensors(file, into.prog, std::move(known)));
}

namespace {

// A state as the file has it, in the layout of the program; empty: it has none.
std::vector<char> state_in(weights &file, const program &program, const tensor_view &state) {
  const state_name own = state_name_of(state.name);
  const std::string &parameter = own.parameter;
  const auto name_of = [&](const std::string &tensor, bool is_transposed = false) {
    return "state." + tensor + "." + slot_in_module(own.slot, is_transposed);
  };
  if (file.find(name_of(parameter)))
    return values_in(file, name_of(parameter), state, state.shape);
  for (const export_initializer &entry : program.module_tensors) {
    const std::string name = name_of(entry.onnx_name, entry.transposed);
    if (entry.parameter_name == parameter && file.find(name)) {
      const bool is_turned = entry.transposed && state.shape.size() == 2;
      return values_of(file, state, {name, name_origin::module, is_turned});
    }
  }
  std::vector<const state_piece *> pieces;
  for (const state_piece &piece : program.state_pieces)
    if (piece.parameter_name == parameter) {
      if (!file.find(name_of(piece.tensor_name)))
        return {};
      pieces.push_back(&piece);
    }
  return pieces.empty() ? std::vector<char>()
                        : values_of(file, state, pieces,
                                    [&](const std::string &tensor) { return name_of(tensor); });
}

// NaN where it is none.
double scalar_of(const weights &file, const std::string &name) {
  const std::string &type = file.find(name)->type;
  const std::vector<char> bytes = file.bytes_of(name);
  const auto as = [&](auto value) {
    if (bytes.size() != sizeof value)
      return double(NAN);
    memcpy(&value, bytes.data(), sizeof value);
    return static_cast<double>(value);
  };
  return type == "F64"   ? as(double{})
         : type == "I64" ? as(int64_t{})
         : type == "F32" ? as(float{})
                         : NAN;
}

} // namespace

int64_t read_optimizer_state(const program &program, const std::vector<tensor_view> &states,
                             const std::string &path) {
  check_has_numbers(states);
  weights file(path);
  std::vector<std::vector<char>> values; // all of them before the first is taken
  for (const tensor_view &state : states) {
    values.push_back(state_in(file, program, state));
    if (values.back().empty() && state.bytes > 0)
      throw failure(exit_checkpoint, path + ": has nothing of the state '" + state.name +
                                         "'\n  try: a file of states, of the same optimizer");
  }
  for (size_t i = 0; i < states.size(); ++i)
    memcpy(states[i].data, values[i].data(), values[i].size());
  for (const auto &[name, tensor] : file.tensors())
    if (name.ends_with(".step")) {
      const double updates = scalar_of(file, name);
      if (!(updates >= 0 && updates < 0x1p53))
        throw failure(exit_checkpoint, path + ": '" + name +
                                           "' is no number of updates\n  try: "
                                           "a file of states");
      return static_cast<int64_t>(updates);
    }
  // SGD does not count them; with a momentum the first step, which nothing dampens, is past.
  return states.empty() ? 0 : 1;
}

} // namespace trainc
