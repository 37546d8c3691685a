// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/program_names.h"

#include "dialects/names/recomputed_name.h"
#include "runtime/failure.h"
#include "tools/simulate/stage_plan.h"

namespace trainc::inspect {

using nlohmann::json;

namespace {

/// A part of a document, of which fields may be missing or of another kind.
class Part {
public:
  Part(const std::string &path, const json &value) : path(path), value(value) {
    if (!value.is_object())
      refuse("an object is expected where there is none");
  }

  std::string text(const char *name) const {
    const json *found = find(name);
    if (!found || !found->is_string())
      refuse("an object has no text '" + std::string(name) + "'");
    return found->get<std::string>();
  }
  std::string textOr(const char *name, const char *otherwise) const {
    return find(name) ? text(name) : otherwise;
  }
  int64_t amount(const char *name) const {
    const json *found = find(name);
    if (!found || !found->is_number_integer() || found->get<int64_t>() < 0)
      refuse("an object has no amount '" + std::string(name) + "'");
    return found->get<int64_t>();
  }
  int step(const char *name) const {
    const int64_t number = amount(name);
    if (number > INT32_MAX)
      refuse("a step has the number " + std::to_string(number));
    return int(number);
  }
  const json &list(const char *name) const {
    const json *found = find(name);
    if (!found || !found->is_array())
      refuse("an object has no list '" + std::string(name) + "'");
    return *found;
  }
  std::vector<std::string> texts(const json &list) const {
    std::vector<std::string> all;
    if (!list.is_array())
      refuse("a list of names is expected where there is none");
    for (const json &each : list) {
      if (!each.is_string())
        refuse("a name is no text");
      all.push_back(each.get<std::string>());
    }
    return all;
  }
  Part part(const json &other) const { return {path, other}; }

private:
  const json *find(const char *name) const {
    auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  [[noreturn]] void refuse(const std::string &what) const {
    throw failure(exit_data, path + ": " + what + "\n  try: trainc again, into the same folder");
  }

  const std::string &path;
  const json &value;
};

void readNodes(const Part &document, ProgramNames &names) {
  for (const json &object : document.list("nodes")) {
    Part node = document.part(object);
    names.nodes.push_back({node.text("node"), node.text("operator"), node.textOr("name", ""),
                           node.texts(node.list("values"))});
  }
  for (const json &object : document.list("entries")) {
    Part entry = document.part(object);
    int number = 0;
    for (const json &step : entry.list("computes"))
      names.steps.push_back({entry.text("entry"), number++, entry.texts(step)});
  }
}

void readParameters(const Part &document, ProgramNames &names) {
  for (const json &object : document.list("parameters")) {
    Part parameter = document.part(object);
    ParameterNames of{parameter.text("module_name"), {parameter.text("name")}};
    for (const json &tied : parameter.list("tied"))
      of.others.push_back(document.part(tied).text("name"));
    names.parameters.push_back(std::move(of));
  }
}

void readTensors(const Part &document, ProgramNames &names) {
  for (const json &object : document.list("entries")) {
    Part entry = document.part(object);
    for (const json &planned : entry.list("tensors")) {
      Part tensor = document.part(planned);
      names.tensors.push_back({entry.text("entry"), tensor.text("arena"), tensor.text("tensor"),
                               tensor.amount("offset"), tensor.amount("bytes"),
                               tensor.step("first_step"), tensor.step("last_step")});
    }
  }
}

} // namespace

ProgramNames readProgramNames(const std::string &folder) {
  ProgramNames names;
  auto read = [&](const char *plan, void (*add)(const Part &, ProgramNames &)) {
    const std::string path = folder + "/plan/" + plan + ".json";
    const json document = simulate::readDocument(path);
    add(Part(path, document), names);
  };
  read("nodes", readNodes);
  read("parameters", readParameters);
  read("memory", readTensors);
  return names;
}

constexpr std::string_view kNewValue = "new "; // of a buffer

std::string subjectOf(const std::string &title) {
  std::string_view rest = title;
  for (bool more = true; more;) {
    more = false;
    for (std::string_view prefix :
         {std::string_view("gradient of "), std::string_view(recomputedPrefix), kNewValue})
      if (rest.substr(0, prefix.size()) == prefix) {
        rest.remove_prefix(prefix.size());
        more = true;
      }
  }
  return std::string(rest);
}

} // namespace trainc::inspect
