// SPDX-License-Identifier: Apache-2.0
//
// Problem: of norm_a(x) and norm_b(x), both fresh, one node is left, with the call of norm_a. That
// norm_b has another use, which names its parameters, tells nothing about this one.
//
// Method: what used norm_b(x) still names it: a reference to a value whose call is gone, where the
// node reads another one. If both are results of one kind of operation, the two were merged. Else
// the call that is gone may have been a view or a cast, which the optimizer takes out; those have
// been users of the value that is read, whose call records how many users it had. What is left
// over was merged. From such a call the walk goes on to the calls whose values it reads: either
// the call that is gone was a user of the same value, which then had one more, or that was merged,
// too.
//
// Weakness: a user that left no trace (a size that was known) counts as the one looked for.
#include "compiler/onnx/merged_calls.h"
#include "compiler/onnx/graph.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

MergedCalls::MergedCalls(const ModelFile &file, const ExportedProgram &program) : program(program) {
  const onnx::GraphProto &graph = file.graph();
  collect(graph);
  for (const std::string &name : order)
    findStands(name, calls[name].call.references, read(calls[name]));
  std::vector<std::string> outputs;
  for (const auto &output : graph.output())
    outputs.push_back(output.name());
  if (program.outputs().size() == outputs.size())
    findStands("", program.outputs(), outputs);
  StringMap<llvm::StringSet<>> parts; // lost names, by value of a node without a call
  for (const Stand &stand : stands)
    if (makers.count(stand.value))
      calls[makerOf(stand.value)].users.insert(stand.lost);
    else
      parts[stand.value].insert(stand.lost);
  for (const Stand &stand : stands) {
    std::string name = makerOf(stand.value);
    const Call &maker = calls[name];
    StringRef kind = baseName(stand.lost);
    size_t users = maker.call.users.value_or(SIZE_MAX);
    bool isMerged = !makers.count(stand.value)
                        ? parts[stand.value].size() > 1 && maker.users.size() >= users
                        : maker.users.size() > users ||
                              (!isMovement(baseName(name)) &&
                               (kind == baseName(name) || kind == baseName(stand.value)));
    if (isMerged)
      follow(name);
  }
}

void MergedCalls::collect(const onnx::GraphProto &graph) {
  for (const auto &tensor : graph.initializer()) {
    initializers.insert(tensor.name());
    if (isFloat(tensor.data_type()) && tensor.dims_size() > 0)
      tables.insert(tensor.name());
    values.insert(tensor.name());
    for (const std::string &source : program.sourcesOf(tensor))
      values.insert(source);
  }
  for (const auto &input : graph.input()) {
    inputs.insert(input.name());
    values.insert(input.name());
  }
  for (const NodeProto &node : graph.node()) {
    values.insert(node.output().begin(), node.output().end());
    std::optional<ProgramCall> call = callOf(node);
    std::string name = call ? call->name : "";
    if (call && !calls.count(name)) {
      values.insert(name);
      order.push_back(name);
      calls[name].call = std::move(*call);
    }
    if (!name.empty())
      calls[name].nodes.push_back(&node);
    for (const std::string &output : node.output())
      if (name.empty())
        passed[output] = &node;
      else
        makers[output] = name;
  }
  for (const std::string &name : order)
    for (const std::string &reference : calls[name].call.references)
      if (auto maker = makers.find(reference); maker != makers.end())
        calls[maker->second].users.insert(name);
      else if (auto call = calls.find(reference); call != calls.end())
        call->second.users.insert(name);
  for (const NodeProto &node : graph.node())
    if (node.output_size() && passed.count(node.output(0)))
      for (const std::string &input : node.input())
        if (auto maker = makers.find(input); maker != makers.end())
          calls[maker->second].users.insert(node.output(0));
}

bool MergedCalls::isLost(StringRef reference) const {
  return !values.contains(reference) && !program.listsInput(reference);
}

// The call that a value comes from, also through nodes without one (a split); "" for inputs.
std::string MergedCalls::makerOf(StringRef value) const {
  for (size_t step = 0; step < passed.size() + 1; ++step) {
    if (auto maker = makers.find(value); maker != makers.end())
      return maker->second;
    auto node = passed.find(value);
    if (node == passed.end() || node->second->input_size() == 0)
      return "";
    value = node->second->input(0);
  }
  return "";
}

// What the nodes of a call read beside their own values, each as often as they do.
std::vector<std::string> MergedCalls::read(const Call &call) const {
  std::vector<std::string> result;
  for (const NodeProto *node : call.nodes)
    for (const std::string &input : node->input()) {
      auto maker = makers.find(input);
      bool isOwn = maker != makers.end() && maker->second == call.call.name;
      if (!input.empty() && !isOwn)
        result.push_back(input);
    }
  return result;
}

bool MergedCalls::isValueOf(StringRef value, StringRef reference) const {
  auto maker = makers.find(value);
  return value == reference || (maker != makers.end() && maker->second == reference) ||
         (inputs.contains(value) && program.listsInput(reference));
}

// Which value a call reads for each reference that is lost: in order where each has its own, else
// any that no other reference means.
void MergedCalls::findStands(const std::string &user, ArrayRef<std::string> references,
                             ArrayRef<std::string> read) {
  SmallVector<std::string> named, lost, computed;
  for (const std::string &reference : references) {
    bool isInitializer = !program.parameterAt(reference).empty() ||
                         !program.bufferAt(reference).empty() || initializers.contains(reference);
    if (!isInitializer && !isNumber(baseName(reference)))
      named.push_back(reference);
  }
  for (const std::string &reference : named)
    if (isLost(reference) && !is_contained(lost, reference))
      lost.push_back(reference);
  if (lost.empty())
    return;
  for (const std::string &value : read)
    if (!initializers.contains(value))
      computed.push_back(value);
  if (addInOrder(user, references, read) || addInOrder(user, named, computed))
    return;
  SmallVector<std::string> others;
  for (const std::string &value : computed)
    if (!is_contained(others, value) &&
        none_of(named, [&](const std::string &one) { return isValueOf(value, one); }))
      others.push_back(value);
  // One that is lost may have become an initializer: a mask, say, or a table of angles.
  bool readsTable = any_of(read, [&](const std::string &value) {
    return tables.contains(value) && !is_contained(references, value);
  });
  if (readsTable && lost.size() > others.size())
    llvm::erase_if(lost, [](StringRef one) {
      return isMovement(baseName(one)) || isRepetition(baseName(one));
    });
  if (others.empty())
    others.append(computed.begin(), computed.end());
  for (size_t i = 0; i < lost.size(); ++i)
    for (size_t j = 0; j < others.size(); ++j)
      if (i == j || lost.size() != others.size())
        add(user, lost[i], others[j]);
}

void MergedCalls::add(const std::string &user, const std::string &lost, const std::string &value) {
  if (std::string maker = makerOf(value); !maker.empty() && maker != user)
    stands.push_back({lost, value});
}

bool MergedCalls::addInOrder(const std::string &user, ArrayRef<std::string> references,
                             ArrayRef<std::string> read) {
  if (references.size() != read.size() ||
      !all_of(zip_equal(references, read), [&](const auto &pair) {
        const auto &[reference, value] = pair;
        bool isFixed =
            !program.parameterAt(reference).empty() || !program.bufferAt(reference).empty();
        return isFixed ? initializers.contains(value)
                       : isLost(reference) || isValueOf(value, reference);
      }))
    return false;
  for (const auto &[reference, value] : zip_equal(references, read))
    if (isLost(reference) && !isNumber(baseName(reference)))
      add(user, reference, value);
  return true;
}

void MergedCalls::follow(const std::string &first) {
  std::vector<std::string> left{first};
  while (!left.empty()) {
    std::string name = std::move(left.back());
    left.pop_back();
    if (name.empty() || !merged.insert(name).second)
      continue;
    for (const std::string &value : read(calls[name])) {
      std::string maker = makerOf(value);
      auto found = calls.find(maker);
      if (found == calls.end())
        continue;
      const std::optional<size_t> &users = found->second.call.users;
      if (!users || found->second.users.size() >= *users)
        left.push_back(maker);
    }
  }
}

} // namespace trainc::reader
