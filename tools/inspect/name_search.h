// SPDX-License-Identifier: Apache-2.0
//
// What a name may mean: a node, a value or a weight of the model's file, a computation or tensor of
// the plans, or a module.
#pragma once

#include "runtime/plan/plan.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace trainc::inspect {

/// A step or a tensor of an entry function.
template <typename Part> struct PartOfEntry {
  const planned_entry *entry;
  int number; // in the entry's list
  const Part *part;
  const Part *operator->() const { return part; }
};
using StepOfEntry = PartOfEntry<planned_step>;
using TensorOfEntry = PartOfEntry<planned_tensor>;

/// What a title or tensor's name is about: `h.0.ln_1` of `gradient of recomputed h.0.ln_1`.
std::string subjectOf(const std::string &title);
/// The names of a parameter and of the weights tied to it in the file.
std::vector<std::string> fileNamesOf(const planned_parameter &parameter);

struct Meaning {
  std::vector<std::string> names;               // of plans, in the order of the model
  std::vector<const planned_node *> unoperated; // nodes that made no operation
  bool isEmpty() const { return names.empty() && unoperated.empty(); }
};

class NameSearch {
public:
  explicit NameSearch(const plan &program);

  /// Of all entry functions, in their order.
  const std::vector<StepOfEntry> &allSteps() const { return everyStep; }
  const std::vector<TensorOfEntry> &allTensors() const { return everyTensor; }

  Meaning find(const std::string &name) const;
  /// What is most like a name that means nothing.
  std::vector<std::string> nearest(const std::string &name) const;

  /// What computes it: the name itself, or its module, where a pass took that for one operation.
  std::string computedAs(const std::string &name) const;
  /// Nodes of the file that the name of a plan stands for.
  std::vector<const planned_node *> nodesOf(const std::string &name) const;
  /// Steps that compute it, its gradient among others, in their order.
  std::vector<const StepOfEntry *> stepsOf(const std::string &name) const;
  /// What a tensor is of: the computation itself, that of a role in it (`h.0.ln_1.mean`), or what
  /// it is the gradient of.
  std::vector<std::string> namesOf(const TensorOfEntry &tensor) const;
  const planned_parameter *parameterOf(const std::string &name) const;
  /// Whether a tensor has it, or is its gradient.
  bool isStored(const std::string &name) const { return stored.count(name) > 0; }

private:
  void addExact(const std::string &name, Meaning &meaning) const;
  void addMembers(const std::string &module, Meaning &meaning) const;
  bool isComputed(const std::string &name) const { return steps.count(name) > 0; }

  const plan &program;
  std::vector<StepOfEntry> everyStep;
  std::vector<TensorOfEntry> everyTensor;
  std::map<std::string, std::vector<const StepOfEntry *>> steps; // by what they compute
  std::set<std::string> stored; // names of tensors and what they are about
  std::map<std::string, std::vector<const planned_node *>> nodes; // by name
  std::map<std::string, std::vector<const planned_node *>> parts; // by what computes them
};

} // namespace trainc::inspect
