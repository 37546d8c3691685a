// SPDX-License-Identifier: Apache-2.0
#include "runtime/initial_values.h"

#include "runtime/checkpoint.h"
#include "runtime/data_types.h"
#include "runtime/host_access.h"
#include "runtime/safetensors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace trainc {
namespace {

// By whose name a file has a parameter.
enum class name_origin { own, module, copy };

// A tensor of a file that a parameter has its values from.
struct tensor_source {
  std::string name; // in the file
  name_origin origin = name_origin::own;
  bool is_transposed = false;
};

// Of each parameter that the file has: by its own name, the one that the module has for it, or that
// of a copy which the exporter wrote.
std::map<std::string, tensor_source> sources_in(const safetensors_index &index,
                                                const program &program) {
  std::map<std::string, tensor_source> sources; // the first that is added stays
  for (int64_t i = 0; i < program.parameter_count; ++i)
    if (const char *name = program.parameters[i].tensor.name; index.tensors.count(name))
      sources.insert({name, {name}});
  auto add = [&](const export_initializer *entries, int64_t count, name_origin origin) {
    for (int64_t i = 0; i < count; ++i)
      if (const export_initializer &entry = entries[i]; index.tensors.count(entry.onnx_name))
        sources.insert({entry.parameter_name, {entry.onnx_name, origin, entry.transposed}});
  };
  add(program.module_tensors, program.module_tensor_count, name_origin::module);
  add(program.exports, program.export_count, name_origin::copy);
  return sources;
}

// As the module or the copy has it: transposed, or with other axes.
void read_other_form(run &run, const input_file &file, const safetensors_index &index,
                     const tensor_view &parameter, const tensor_source &from) {
  tensor_view stored = parameter;
  stored.name = from.name;
  const std::vector<int64_t> &shape = index.tensors.at(from.name).shape;
  if (from.is_transposed)
    std::reverse(stored.shape.begin(), stored.shape.end());
  else if (std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()) *
               bytes_of(parameter.type) ==
           parameter.bytes)
    stored.shape = shape;
  std::vector<char> values(static_cast<size_t>(parameter.bytes));
  stored.data = values.data();
  host_access memory;
  read_tensor(file, index, stored, memory, exit_checkpoint);
  const int64_t width = bytes_of(parameter.type);
  const int64_t columns = from.is_transposed ? parameter.shape[1] : 1,
                rows = from.is_transposed ? parameter.shape[0] : 1;
  in_transfers(parameter.bytes, [&](int64_t begin, int64_t bytes) {
    run.target.write(parameter.data + begin, bytes, [&](char *host) {
      if (!from.is_transposed) {
        memcpy(host, values.data() + begin, static_cast<size_t>(bytes));
        return;
      }
      for (int64_t i = begin / width; i < (begin + bytes) / width; ++i, host += width)
        memcpy(host, values.data() + (i % columns * rows + i / columns) * width,
               static_cast<size_t>(width));
    });
  });
}

// As a checkpoint asks for it: else every step would be skipped.
bool is_sound(run &run, size_t number, const tensor_view &parameter) {
  bool sound = true;
  in_transfers(parameter.bytes, [&](int64_t begin, int64_t bytes) {
    sound &= is_sound(run.prog, number, parameter.type,
                      run.target.read(parameter.data + begin, bytes), bytes);
  });
  return sound;
}

void add_to(std::string &list, const std::string &text) {
  list += (list.empty() ? "" : ", ") + text;
}

} // namespace

void take_initial_values(run &run, const std::string &path) {
  run.ranks.together([&] {
    const input_file file(path, exit_checkpoint);
    const safetensors_index index = read_safetensors_index(file, exit_checkpoint);
    const std::map<std::string, tensor_source> sources = sources_in(index, run.prog);
    const std::vector<tensor_view> parameters = parameter_tensors(run.prog, run.places());
    std::set<std::string> known; // a state has tied weights under each of their names
    std::string missing, of_module, of_copies, unsound;
    size_t taken = 0;
    for (size_t number = 0; number < parameters.size(); ++number) {
      const tensor_view &tensor = parameters[number];
      const auto found = sources.find(tensor.name);
      if (found == sources.end()) {
        add_to(missing, "'" + tensor.name + "'");
        continue;
      }
      ++taken;
      const tensor_source &from = found->second;
      known.insert({tensor.name, from.name});
      if (from.origin == name_origin::own)
        read_tensor(file, index, tensor, run.target, exit_checkpoint);
      else
        read_other_form(run, file, index, tensor, from);
      if (!is_sound(run, number, tensor))
        add_to(unsound, "'" + from.name + "'");
      if (from.origin == name_origin::own)
        continue;
      add_to(from.origin == name_origin::module ? of_module : of_copies,
             "'" + tensor.name + "' from '" + from.name + "'" +
                 (from.is_transposed ? ", transposed" : ""));
    }
    if (!unsound.empty())
      throw failure(exit_checkpoint, path + ": has numbers that are not finite in " + unsound);
    if (!of_module.empty())
      run.warn(path + ": by the names of the module: " + of_module);
    if (!of_copies.empty())
      run.warn(path + ": by the names of copies in the model's file: " + of_copies);
    if (taken == 0)
      throw failure(exit_checkpoint,
                    path + ": has none of the model's parameters\n  try: names such as '" +
                        (parameters.empty() ? "" : parameters.front().name) + "'");
    if (!missing.empty())
      run.warn(format_text("%s: has %zu of %zu parameters; initial values have %s", path.c_str(),
                           taken, parameters.size(), missing.c_str()));
    for (int64_t i = 0; i < run.prog.export_count; ++i)
      known.insert(run.prog.exports[i].onnx_name);
    const auto others = static_cast<size_t>(
        std::count_if(index.tensors.begin(), index.tensors.end(),
                      [&](const auto &entry) { return !known.count(entry.first); }));
    if (others > 0)
      run.warn(format_text("%s: %zu tensors are no parameters of the model", path.c_str(), others));
  });
}

} // namespace trainc
