// SPDX-License-Identifier: Apache-2.0
//
// What a name may mean: a node, a value or a weight of the model's file, a computation or tensor of
// the plans, or a module.
#pragma once

#include "tools/inspect/program_names.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace trainc::inspect {

struct Meaning {
  std::vector<std::string> names;            // of plans, in the order of the model
  std::vector<const NodeNames *> unoperated; // nodes that made no operation
  bool isEmpty() const { return names.empty() && unoperated.empty(); }
};

class NameSearch {
public:
  explicit NameSearch(const ProgramNames &program);

  Meaning find(const std::string &name) const;
  /// What is most like a name that means nothing.
  std::vector<std::string> nearest(const std::string &name) const;

  /// What computes it: the name itself, or its module, where a pass took that for one operation.
  std::string computedAs(const std::string &name) const;
  /// Nodes of the file that the name of a plan stands for.
  std::vector<const NodeNames *> nodesOf(const std::string &name) const;
  /// Steps that compute it, its gradient among others, in their order.
  std::vector<const NamedStep *> stepsOf(const std::string &name) const;
  /// What a tensor is of: the computation itself, that of a role in it (`h.0.ln_1.mean`), or what
  /// it is the gradient of.
  std::vector<std::string> namesOf(const NamedTensor &tensor) const;
  const ParameterNames *parameterOf(const std::string &name) const;
  /// Whether a tensor has it, or is its gradient.
  bool isStored(const std::string &name) const { return stored.count(name) > 0; }

private:
  void addExact(const std::string &name, Meaning &meaning) const;
  void addMembers(const std::string &module, Meaning &meaning) const;
  bool isComputed(const std::string &name) const { return steps.count(name) > 0; }

  const ProgramNames &program;
  std::map<std::string, std::vector<const NamedStep *>> steps; // by what they compute
  std::set<std::string> stored; // names of tensors and what they are about
  std::map<std::string, std::vector<const NodeNames *>> nodes; // by name
  std::map<std::string, std::vector<const NodeNames *>> parts; // by what computes them
};

} // namespace trainc::inspect
