// SPDX-License-Identifier: Apache-2.0
//
// The fingerprint is of parameters, precision and optimizer, the graph of what is computed from
// them: a run goes on with trainers that have both. Of dumps the graph alone is known, which is the
// same for two sizes of a model.
#include "tools/inspect/program_identity.h"

#include "dialects/train/attribute_names.h"
#include "runtime/failure.h"

#include <fstream>

namespace trainc::inspect {

namespace {

constexpr size_t kRuleDigits = 2; // of a graph: digests of two rules cannot be compared

std::string described(const std::string &model, const char *what, const std::string &value) {
  return (model.empty() ? "" : "'" + model + "' with ") + std::string(what) + " " + value;
}

/// Of `train.graph = "02ab"` in a line.
std::string attributeIn(const std::string &line, const std::string &name) {
  const std::string before = name + " = \"";
  const size_t begin = line.find(before);
  if (begin == std::string::npos)
    return "";
  const size_t first = begin + before.size();
  return line.substr(first, line.find('"', first) - first);
}

} // namespace

ProgramIdentity identityOfDumps(const std::vector<std::string> &files) {
  if (files.empty())
    return {};
  std::ifstream file(files.front());
  for (std::string line; std::getline(file, line);)
    if (line.rfind("module", 0) == 0)
      return {files.front(), attributeIn(line, train::kModelAttribute), "",
              attributeIn(line, train::kGraphAttribute)};
  return {};
}

void checkSameProgram(const ProgramIdentity &expected, const ProgramIdentity &found) {
  auto check = [&](const char *what, const std::string &wanted, const std::string &is) {
    if (wanted.empty() || is.empty() || wanted == is)
      return;
    throw failure(exit_data, found.source + ": is of " + described(found.model, what, is) +
                                 ", expected " + described(expected.model, what, wanted) +
                                 " as in " + expected.source +
                                 "\n  try: what one trainer's compilation and runs have written");
  };
  check("fingerprint", expected.fingerprint, found.fingerprint);
  if (expected.graph.compare(0, kRuleDigits, found.graph, 0, kRuleDigits) == 0)
    check("graph", expected.graph, found.graph);
}

} // namespace trainc::inspect
