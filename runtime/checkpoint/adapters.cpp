// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/adapters.h"

#include "runtime/checkpoint/quantized_weights.h"
#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/files/data_types.h"
#include "runtime/files/output_file.h"
#include "runtime/name_pattern.h"
#include "runtime/words.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>

namespace trainc {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *peft_prefix = "base_model.model.";
constexpr int64_t largest_adapter_configuration = 16 << 20; // bytes
constexpr int deepest_adapter_configuration = 8;

const tensor_place &matrix_of(const program &program, const char *parameter) {
  for (const parameter_place &place : program.parameters)
    if (strcmp(place.tensor.name, parameter) == 0)
      return place.tensor;
  throw failure(exit_internal, std::string("an adapter has no parameter '") + parameter + "'");
}

int64_t rank_of(const program &program, const adapter &adapter) {
  return matrix_of(program, adapter.a).shape[0];
}

double factor_of(const program &program, const adapter &adapter) {
  return adapter.alpha / static_cast<double>(rank_of(program, adapter));
}

const char *values_at(const arenas &arenas, const tensor_place &place) {
  return arenas[place.arena] + place.offset;
}

template <typename number>
std::vector<char> wide_values(const arenas &arenas, const tensor_place &place) {
  std::vector<char> values(static_cast<size_t>(element_count(place)) * sizeof(number));
  for (int64_t i = 0; i < element_count(place); ++i) {
    const auto value = static_cast<number>(
        number_at(place.type, values_at(arenas, place) + i * bytes_of(place.type)));
    memcpy(values.data() + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
  }
  return values;
}

template <typename number>
void merge(const program &program, const arenas &arenas, const adapter &adapter, number *weight) {
  const tensor_place &a_place = matrix_of(program, adapter.a),
                     &b_place = matrix_of(program, adapter.b);
  const auto *a = reinterpret_cast<const number *>(values_at(arenas, a_place));
  const auto *b = reinterpret_cast<const number *>(values_at(arenas, b_place));
  const int64_t rank = a_place.shape[0], in = element_count(a_place) / rank, // with a kernel's axes
      out = b_place.shape[0];
  const double factor = factor_of(program, adapter);
  std::vector<double> row(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t k = 0; k < rank; ++k)
      for (int64_t i = 0; i < in; ++i)
        row[static_cast<size_t>(i)] +=
            static_cast<double>(b[o * rank + k]) * static_cast<double>(a[k * in + i]);
    for (int64_t i = 0; i < in; ++i) {
      number &element = weight[adapter.is_in_by_out ? i * out + o : o * in + i];
      element =
          static_cast<number>(static_cast<double>(element) + factor * row[static_cast<size_t>(i)]);
    }
  }
}

std::string name_in_module(const adapter &adapter, const char *which) {
  return std::string(adapter.module) + ".lora_" + which + ".weight";
}

void write_matrices(const program &program, const arenas &arenas, output_file &file) {
  std::vector<tensor_view> views;
  std::vector<std::vector<char>> values; // f32, which PEFT has them in
  for (const adapter &adapter : program.adapters)
    for (auto [which, name] : {std::pair("A", adapter.a), std::pair("B", adapter.b)}) {
      const tensor_place &place = matrix_of(program, name);
      values.push_back(wide_values<float>(arenas, place));
      views.push_back({peft_prefix + name_in_module(adapter, which), data_type::f32,
                       shape_of(place), values.back().data(),
                       static_cast<int64_t>(values.back().size())});
    }
  file.write(safetensors_header(views, {{"format", "pt"}}));
  for (const tensor_view &view : views)
    file.write(view.data, view.bytes);
}

// The rank and alpha of the first adapter are those of all that its patterns do not name.
std::string peft_configuration_of(const program &program) {
  const adapter &first = program.adapters[0];
  const int64_t rank = rank_of(program, first);
  json modules = json::array(), ranks = json::object(), alphas = json::object();
  bool is_in_by_out = false;
  for (const adapter &adapter : program.adapters) {
    modules.push_back(adapter.module);
    if (const int64_t own = rank_of(program, adapter); own != rank)
      ranks[adapter.module] = own;
    if (adapter.alpha != first.alpha)
      alphas[adapter.module] = adapter.alpha;
    is_in_by_out |= adapter.is_modules_in_by_out;
  }
  const json configuration = {{"alpha_pattern", alphas},
                              {"base_model_name_or_path", nullptr},
                              {"bias", "none"},
                              {"fan_in_fan_out", is_in_by_out},
                              {"inference_mode", true},
                              {"lora_alpha", first.alpha},
                              {"lora_dropout", first.dropout},
                              {"peft_type", "LORA"},
                              {"r", rank},
                              {"rank_pattern", ranks},
                              {"target_modules", modules},
                              {"task_type", nullptr}};
  return configuration.dump(2) + "\n";
}

// The configuration beside a file of adapters; null: there is none.
json configuration_beside(const weights &weights) {
  const std::string path =
      (fs::path(weights.path()).parent_path() / adapter_configuration).string();
  if (!exists(path))
    return nullptr;
  const input_file file(path, exit_checkpoint);
  if (file.size() > largest_adapter_configuration)
    throw failure(exit_checkpoint, path + ": is too large for the configuration of an adapter");
  json configuration = bounded_json(file.whole_text(), deepest_adapter_configuration);
  if (!configuration.is_object() || !configuration.contains("lora_alpha") ||
      !configuration["lora_alpha"].is_number())
    throw failure(exit_checkpoint, path + ": is no configuration of a LoRA adapter: it has no "
                                          "number lora_alpha");
  return configuration;
}

// By PEFT's rule: a pattern matches the end of a path, after a dot.
double alpha_in(const json &configuration, const std::string &module) {
  const json patterns = configuration.value("alpha_pattern", json::object());
  if (patterns.is_object())
    for (auto &[key, value] : patterns.items()) {
      std::string why;
      const auto pattern = name_pattern::parse("(.*\\.)?(" + key + ")", why);
      if (pattern && pattern->matches(module) && value.is_number())
        return value.get<double>();
    }
  return configuration["lora_alpha"].get<double>();
}

// Empty: as the program has it.
std::string factor_problem(const json &configuration, const program &program,
                           const adapter &adapter) {
  const auto rank = static_cast<double>(rank_of(program, adapter));
  const bool by_root = configuration.contains("use_rslora") && configuration["use_rslora"] == true;
  const double found = alpha_in(configuration, adapter.module) / (by_root ? std::sqrt(rank) : rank);
  const double own = factor_of(program, adapter);
  if (std::abs(found - own) <= 1e-6 * own)
    return "";
  return format_text("that of '%s' is scaled by %g, expected %g (alpha / rank)", adapter.module,
                     found, own);
}

std::string shape_problem(const weights &file, const tensor_place &place) {
  const stored_tensor *found = file.find(place.name);
  if (!found)
    return std::string("it lacks '") + place.name + "'";
  const std::vector<int64_t> shape = shape_of(place);
  if (found->shape == shape)
    return "";
  return std::string("'") + place.name + "' has shape " + shape_text(found->shape) + ", expected " +
         shape_text(shape);
}

} // namespace

std::vector<char> merged_values(const program &program, const arenas &arenas,
                                const std::string &parameter) {
  std::vector<char> merged;
  if (const quantized_weight *form = quantized_form(program, parameter))
    merged = dequantized_values(program, arenas, *form);
  for (const adapter &adapter : program.adapters) {
    if (adapter.weight != parameter)
      continue;
    const tensor_place &weight = matrix_of(program, adapter.weight);
    if (merged.empty())
      merged = weight.type == data_type::f64 ? wide_values<double>(arenas, weight)
                                             : wide_values<float>(arenas, weight);
    if (weight.type == data_type::f64)
      merge(program, arenas, adapter, reinterpret_cast<double *>(merged.data()));
    else
      merge(program, arenas, adapter, reinterpret_cast<float *>(merged.data()));
  }
  return merged;
}

bool has_merged_values(const program &program, const std::string &parameter) {
  return quantized_form(program, parameter) ||
         std::ranges::any_of(program.adapters,
                             [&](const adapter &adapter) { return adapter.weight == parameter; });
}

bool is_of_adapter(const program &program, const std::string &parameter) {
  return std::ranges::any_of(program.adapters, [&](const adapter &adapter) {
    return adapter.a == parameter || adapter.b == parameter;
  });
}

std::vector<std::string> trained_beside_adapters(const program &program) {
  std::vector<std::string> names;
  for (const parameter_place &place : program.parameters)
    if (place.role != parameter_role::frozen && !is_of_adapter(program, place.tensor.name))
      names.emplace_back(place.tensor.name);
  return names;
}

std::vector<std::string> adapters_without_module(const program &program) {
  std::set<std::string> known;
  for (const export_initializer &tensor : program.module_tensors)
    known.insert(tensor.parameter_name);
  std::vector<std::string> names;
  for (const adapter &adapter : program.adapters)
    if (!known.count(adapter.weight))
      names.emplace_back(adapter.module);
  return names;
}

void write_adapters(const program &program, const arenas &arenas, const std::string &folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw failure(exit_disk, folder + ": cannot be made: " + error.message());
  output_file matrices(folder + "/" + adapter_weights),
      configuration(folder + "/" + adapter_configuration);
  write_matrices(program, arenas, matrices);
  configuration.write(peft_configuration_of(program));
  publish_together({&matrices, &configuration});
}

bool take_adapter_names(weights &file) {
  const bool holds_adapters = std::ranges::any_of(
      file.tensors(), [](const auto &entry) { return entry.first.starts_with(peft_prefix); });
  const bool holds_others = std::ranges::any_of(file.tensors(), [](const auto &entry) {
    return entry.first.find(".lora_") == entry.first.npos;
  });
  if (file.tensors().empty() || (holds_others && !holds_adapters))
    return false;
  file.rename([](const std::string &name) {
    return name.starts_with(peft_prefix) ? name.substr(strlen(peft_prefix)) : name;
  });
  return true;
}

void check_adapters(const weights &file, const program &program) {
  if (program.adapters.empty())
    throw failure(exit_checkpoint,
                  file.path() +
                      ": holds adapters, and this program has none\n  try: trainc --lora");
  std::vector<std::string> problems;
  const auto add = [&](std::string problem) {
    if (!problem.empty())
      problems.push_back(std::move(problem));
  };
  std::set<std::string> own;
  for (const adapter &adapter : program.adapters)
    for (const char *name : {adapter.a, adapter.b}) {
      add(shape_problem(file, matrix_of(program, name)));
      own.insert(name);
    }
  for (const auto &[name, tensor] : file.tensors())
    if (!own.count(name))
      add("it has '" + name + "', which this program has not");
  if (const json configuration = configuration_beside(file); !configuration.is_null())
    for (const adapter &adapter : program.adapters)
      add(factor_problem(configuration, program, adapter));
  if (!problems.empty())
    throw failure(exit_checkpoint,
                  file.path() + ": holds adapters that do not fit: " + first_words_of(problems) +
                      "\n  try: trainc --lora with the layers, the rank and the "
                      "alpha that they were trained with");
}

} // namespace trainc
