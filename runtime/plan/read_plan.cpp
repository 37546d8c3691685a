// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/read_plan.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

namespace trainc {
namespace {

using nlohmann::json;

constexpr int deepest = 8; // document, stages, list, stage, list, action, and two to spare
constexpr int64_t most = int64_t{1} << 52;

[[noreturn]] void refuse_plan(const std::string &path, const std::string &what) {
  throw failure(exit_data, path + ": " + what + "\n  try: trainc again, into the same folder");
}

constexpr const char *whole_folder =
    "the whole output folder of trainc, with plan/ as it was written";

json document_of(const std::string &path, const std::string &where_it_is) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    throw failure(exit_data, path + ": cannot be read\n  try: " + where_it_is);
  json document = bounded_json(text, deepest);
  if (!document.is_object())
    refuse_plan(path, "is not a JSON object");
  auto version = document.find("version");
  if (version == document.end() || *version != plan_version)
    refuse_plan(path, "has another version than " + std::to_string(plan_version));
  return document;
}

// Fills the members of an object.
class object_reader {
public:
  // `where`: what the object is, for messages: `entries[0].tensors[3]`.
  object_reader(const std::string &path, std::string where, const json &object)
      : path_(path), where_(std::move(where)), object_(object) {
    if (!object.is_object())
      refuse_this("is not an object");
  }

  template <typename T, typename... More>
  void operator()(const char *name, T &member, More &&...more) {
    auto found = object_.find(name);
    if (found == object_.end())
      refuse_plan(path_, (where_.empty() ? "" : where_ + " ") + "has no '" + name + "'");
    object_reader(*this, name).read(*found, member);
    if constexpr (sizeof...(more) > 0)
      (*this)(more...);
  }
  template <typename T, typename... More> void maybe(const char *name, T &member, More &&...more) {
    if (object_.contains(name))
      (*this)(name, member);
    if constexpr (sizeof...(more) > 0)
      maybe(more...);
  }
  void sum(const char *, int64_t) {} // of other members

private:
  object_reader(const object_reader &outer, const std::string &name)
      : path_(outer.path_), where_(outer.where_ + (outer.where_.empty() ? "" : ".") + name),
        object_(outer.object_) {}

  [[noreturn]] void refuse_this(const std::string &what) const {
    refuse_plan(path_, where_ + (where_.empty() ? "" : " ") + what);
  }

  int64_t number(const json &value, int64_t end) const {
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > end)
      refuse_this("is not a number from 0 to " + std::to_string(end));
    return value.get<int64_t>();
  }

  void read(const json &value, int &member) const {
    member = static_cast<int>(number(value, std::numeric_limits<int>::max() - 1));
  }
  void read(const json &value, int64_t &member) const { member = number(value, most); }
  void read(const json &value, double &member) const {
    if (!value.is_number() || !(value.get<double>() >= 0) || std::isinf(value.get<double>()))
      refuse_this("is not an amount");
    member = value.get<double>();
  }
  void read(const json &value, bool &member) const {
    if (!value.is_boolean())
      refuse_this("is neither true nor false");
    member = value.get<bool>();
  }
  void read(const json &value, std::string &member) const {
    if (!value.is_string())
      refuse_this("is not text");
    member = value.get<std::string>();
  }
  void read(const json &value, sharing &member) const {
    for (sharing each : {sharing::none, sharing::state, sharing::gradients})
      if (value == name_of(each)) {
        member = each;
        return;
      }
    refuse_this("is unknown: " + value.dump());
  }
  template <typename T> void read(const json &value, std::optional<T> &member) const {
    read(value, member.emplace());
  }
  template <typename T> void read(const json &value, std::vector<T> &member) const {
    if (!value.is_array())
      refuse_this("is not a list");
    member.resize(value.size());
    for (size_t i = 0; i < member.size(); ++i) {
      object_reader element(*this, "");
      element.where_ = where_ + "[" + std::to_string(i) + "]";
      element.read(value[i], member[i]);
    }
  }
  template <typename T> void read(const json &value, T &member) const {
    object_reader reader(path_, where_, value);
    member.members(reader);
  }

  const std::string &path_;
  std::string where_;
  const json &object_;
};

template <typename T>
T read_document(const std::string &path, const std::string &where_it_is = whole_folder) {
  const json document = document_of(path, where_it_is);
  T filled;
  object_reader reader(path, "", document);
  filled.members(reader);
  return filled;
}

// What others take as an index.
void check_numbers(const std::string &path, const plan &plan) {
  for (const planned_entry &entry : plan.entries) {
    for (const planned_step &step : entry.steps)
      if (static_cast<size_t>(step.kernel) >= entry.kernels.size())
        refuse_plan(path, "a step of '" + entry.name + "' has no kernel");
    const auto steps = static_cast<int64_t>(entry.steps.size());
    if (entry.peak > steps)
      refuse_plan(path, "'" + entry.name + "' has no step " + std::to_string(entry.peak));
    for (const planned_tensor &tensor : entry.tensors)
      if (tensor.first > tensor.last || tensor.last > steps ||
          (!tensor.is_argument && tensor.first >= steps))
        refuse_plan(path, "'" + tensor.name + "' is not alive in steps of '" + entry.name + "'");
  }
}

} // namespace

std::string plan_path(const std::string &folder) { return folder + "/plan/plan.json"; }

plan read_plan(const std::string &folder) {
  const std::string path = plan_path(folder);
  plan plan = read_document<trainc::plan>(path);
  check_numbers(path, plan);
  return plan;
}

plan read_plan(const std::string &folder, const std::function<void(const std::string &)> &warn) {
  try {
    return read_plan(folder);
  } catch (const failure &problem) {
    warn(problem.message.substr(0, problem.message.find('\n')) +
         "; steps have numbers alone, without names and costs");
    return {};
  }
}

source_map read_source_map(const std::string &folder, const plan &of) {
  const std::string path = folder + "/plan/source_map.json";
  source_map map = read_document<source_map>(path);
  for (const mapped_entry &entry : map.entries) {
    const planned_entry *planned = of.find(entry.name);
    if (!planned || entry.steps.size() != planned->steps.size() ||
        entry.tensors.size() != planned->tensors.size())
      refuse_plan(path, "'" + entry.name + "' has other steps or tensors than in the plan");
    for (const mapped_step &step : entry.steps)
      if (step.kernel >= static_cast<int>(map.kernels.size()))
        refuse_plan(path, "a step of '" + entry.name + "' has no kernel");
  }
  return map;
}

register_table read_registers(const std::string &folder) {
  return read_document<register_table>(
      folder + "/plan/registers.json",
      "trainc --target cuda, without --source-only: nvcc says what registers kernels have");
}

} // namespace trainc
