// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/program_names.h"

#include "dialects/names/recomputed_name.h"
#include "tools/simulate/plan_fields.h"

namespace trainc::inspect {

using nlohmann::json;
using simulate::Fields;

namespace {

void readNodes(const std::string &path, const json &document, ProgramNames &names) {
  const Fields plan(path, "the plan", document);
  for (const json &object : plan.list("nodes")) {
    const Fields node(path, "a node", object);
    names.nodes.push_back({node.text("node"), node.text("operator"),
                           node.has("name") ? node.text("name") : "",
                           node.texts(node.list("values"))});
  }
  for (const json &object : plan.list("entries")) {
    const Fields entry(path, "an entry", object);
    int number = 0;
    for (const json &step : entry.list("computes"))
      names.steps.push_back({entry.text("entry"), number++, entry.texts(step)});
  }
}

void readParameters(const std::string &path, const json &document, ProgramNames &names) {
  for (const json &object : Fields(path, "the plan", document).list("parameters")) {
    const Fields parameter(path, "a parameter", object);
    ParameterNames of{parameter.text("module_name"), {parameter.text("name")}};
    for (const json &tied : parameter.list("tied"))
      of.others.push_back(Fields(path, "a tied weight", tied).text("name"));
    names.parameters.push_back(std::move(of));
  }
}

void readTensors(const std::string &path, const json &document, ProgramNames &names) {
  for (const json &object : Fields(path, "the plan", document).list("entries")) {
    const Fields entry(path, "an entry", object);
    for (const json &planned : entry.list("tensors")) {
      const Fields tensor(path, "a tensor", planned);
      const auto step = [&](const char *name) { return int(tensor.integer(name, 0, INT32_MAX)); };
      names.tensors.push_back({entry.text("entry"), tensor.text("arena"), tensor.text("tensor"),
                               tensor.bytes("offset"), tensor.bytes("bytes"), step("first_step"),
                               step("last_step")});
    }
  }
}

} // namespace

ProgramNames readProgramNames(const std::string &folder) {
  ProgramNames names;
  auto read = [&](const char *plan,
                  void (*add)(const std::string &, const json &, ProgramNames &)) {
    const std::string path = folder + "/plan/" + plan + ".json";
    add(path, simulate::readDocument(path), names);
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
