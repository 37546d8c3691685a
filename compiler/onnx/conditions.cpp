// SPDX-License-Identifier: Apache-2.0
//
// Problem: exporters write `If` for what they could not decide: `squeeze` where a size is 1, a
// sampling rate, a training flag. Programs here have no control flow.
//
// Method: the values that conditions need are imported by themselves, with both branches of every
// `If` in the graph; where a condition is known, the values behind it are those of its branch. Once
// more with the branches that are left, which may have fewer parameters: until nothing is new.
//
// Known weakness: what conditions need is imported twice or more.
#include "compiler/onnx/conditions.h"
#include "compiler/onnx/importer.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

using onnx::GraphProto;
using onnx::NodeProto;

Conditions findConditions(const ModelFile &file, const Separation &separation, const Recipe &recipe,
                          mlir::MLIRContext &context) {
  Conditions found;
  auto isIf = [](const NodeProto &node) { return isOnnx(node, "If"); };
  bool any = any_of(file.graph().node(), isIf);
  for (const onnx::FunctionProto &function : file.model().functions())
    any = any || any_of(function.node(), isIf);
  if (!any)
    return found;
  while (true) {
    Report ignored; // all is looked at again when branches are known
    std::unique_ptr<Graph> graph = Graph::build(file, found.choices, ignored);
    if (!graph)
      return found;
    std::vector<const GraphNode *> open;
    for (const GraphNode *node : graph->nodes())
      if (node->isIf() && !node->inputs.empty() && !node->key().empty())
        open.push_back(node);
    auto decisions = decideParameters(file, *graph, separation, recipe, ignored);
    auto inputs = resolveInputs(file, recipe, ignored);
    bool hasSizes = inputs.has_value();
    if (!decisions)
      decisions.emplace();
    if (!inputs)
      inputs.emplace();
    std::vector<std::string> names;
    names.reserve(open.size());
    for (const GraphNode *node : open)
      names.push_back(node->inputs[0]);
    std::vector<Known> values = evaluateValues(file, *graph, *decisions, *inputs, names, context);
    found.unknown.clear();
    size_t before = found.choices.size();
    for (auto [node, value] : llvm::zip(open, values))
      if (value.tensor && value.tensor.count() == 1)
        found.choices[node->key()] = value.tensor.integer(0) != 0;
      else if (hasSizes)
        found.unknown[node->key()] = value.unknown;
    if (found.choices.size() == before)
      return found;
  }
}

namespace {

class BranchLifter {
public:
  BranchLifter(ModelFile &file, Separation &separation) : file(file), separation(separation) {
    const GraphProto &graph = file.graph();
    for (const auto &input : graph.input())
      taken.insert(input.name());
    for (const auto &tensor : graph.initializer())
      taken.insert(tensor.name());
    for (const auto &node : graph.node())
      take(node);
  }

  void run() {
    for (NodeProto &node : *file.editableGraph().mutable_node())
      liftFrom(node, {});
  }

private:
  using Renamed = std::map<std::string, std::string>;

  void take(const NodeProto &node) {
    taken.insert(node.output().begin(), node.output().end());
    for (const auto &attribute : node.attribute())
      for (const NodeProto &inner : attribute.g().node())
        take(inner);
  }

  void liftFrom(NodeProto &node, const Renamed &around) {
    for (std::string &input : *node.mutable_input())
      if (auto found = around.find(input); found != around.end())
        input = found->second;
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        liftFrom(node, *attribute.mutable_g(), around);
  }

  void liftFrom(const NodeProto &owner, GraphProto &branch, const Renamed &around) {
    Renamed renamed = around;
    for (const NodeProto &node : branch.node())
      for (const std::string &output : node.output())
        renamed.erase(output);
    google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
    for (const onnx::TensorProto &tensor : branch.initializer()) {
      std::string why;
      std::unique_ptr<TensorBytes> values =
          isOnnx(owner, "If") ? tensorBytes(tensor, why) : nullptr;
      if (!values) { // of what is not supported, or wrong: whoever reads it says so
        *kept.Add() = tensor;
        renamed.erase(tensor.name());
        continue;
      }
      std::string name = tensor.name();
      for (int i = 2; !taken.insert(name).second; ++i)
        name = tensor.name() + "_" + std::to_string(i);
      renamed[tensor.name()] = values->name = name;
      separation.notes[name] = "of a branch of " + owner.op_type() + " '" + owner.name() + "'";
      file.addInitializer(std::move(values));
    }
    branch.mutable_initializer()->Swap(&kept);
    for (NodeProto &node : *branch.mutable_node())
      liftFrom(node, renamed);
    for (auto &output : *branch.mutable_output())
      if (auto found = renamed.find(output.name()); found != renamed.end())
        output.set_name(found->second);
  }

  ModelFile &file;
  Separation &separation;
  std::set<std::string> taken;
};

} // namespace

void liftBranchInitializers(ModelFile &file, Separation &separation) {
  BranchLifter(file, separation).run();
}

} // namespace trainc::reader
