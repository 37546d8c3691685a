// SPDX-License-Identifier: Apache-2.0
//
// Problem: exporters write `If` for what they could not decide: `squeeze` where a size is 1, a
// sampling rate, a training flag; and `Loop` for loops of Python. Programs here have no control
// flow.
//
// Method: the values that conditions and numbers of iterations need are imported by themselves,
// with both branches of every `If` in the graph; where a condition is known, the values behind it
// are those of its branch. Once more with the branches and iterations that are left, which may have
// fewer parameters: until nothing is new.
//
// Known weakness: what conditions need is imported twice or more.
#include "compiler/onnx/conditions.h"
#include "compiler/onnx/importer.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

using onnx::GraphProto;
using onnx::NodeProto;

/// The values that decide a node, none of another one, and of a `Loop` that has none.
static std::vector<std::string> deciding(const GraphNode &node) {
  if (node.key().empty())
    return {};
  if (node.isScan()) // behind its own: the sizes of what it scans
    return {node.inputs.begin() + std::min<size_t>(node.proto->input_size(), node.inputs.size()),
            node.inputs.end()};
  if (!node.isIf() && !node.isLoop())
    return {};
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), node.isLoop() ? 2 : 1); ++i)
    if (!node.inputs[i].empty())
      names.push_back(node.inputs[i]);
  return names;
}

static bool isDecided(const GraphNode &node) {
  return !deciding(node).empty() || (node.isLoop() && !node.key().empty());
}

/// How often a scan runs: all that it scans is as long.
static std::optional<int64_t> timesOf(const GraphNode &scan, ArrayRef<Known> sizes,
                                      Unknown &unknown) {
  auto axes = scan.integers("scan_input_axes");
  std::optional<int64_t> times;
  for (auto [k, one] : enumerate(sizes)) {
    const int64_t given = axes && k < axes->size() ? (*axes)[k] : 0, rank = one.tensor.count();
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) {
      unknown = {"its scan_input_axes name axis " + std::to_string(given) + " of a value with " +
                     std::to_string(rank) + (rank == 1 ? " axis" : " axes"),
                 ""};
      return std::nullopt;
    }
    const int64_t length = one.tensor.integer(axis);
    if (times && *times != length) {
      unknown = {"the values that it scans have different lengths, " + std::to_string(*times) +
                     " and " + std::to_string(length),
                 ""};
      return std::nullopt;
    }
    times = length;
  }
  return times;
}

/// What is wrong with a value that decides, a count or a condition; else "".
static std::string wrongDecision(const nn::Tensor &value, bool isCount) {
  if (value.count() != 1)
    return "the value that says it has " + std::to_string(value.count()) +
           " elements, expected one";
  mlir::Type type = value.type().getElementType();
  const bool isBool = type.isInteger(1);
  if (isCount ? isBool || !isa<mlir::IntegerType>(type) : !isBool)
    return std::string("the value that says it is ") +
           (isBool                       ? "a bool"
            : isa<mlir::FloatType>(type) ? "a float"
                                         : "an integer") +
           ", expected " + (isCount ? "an integer" : "a bool");
  return "";
}

/// What they say; none where one of them is not known, whose reason `unknown` gets then.
static std::optional<int64_t> choiceOf(const GraphNode &node, ArrayRef<Known> values,
                                       Unknown &unknown) {
  for (auto [i, value] : enumerate(values)) {
    if (value.tensor)
      unknown.why = node.isScan() ? ""
                                  : wrongDecision(value.tensor, node.isLoop() && i == 0 &&
                                                                    !node.inputs[0].empty());
    else
      unknown = value.unknown;
    if (!value.tensor || !unknown.why.empty())
      return std::nullopt;
  }
  if (node.isIf())
    return values[0].tensor.integer(0) != 0;
  if (node.isScan())
    return timesOf(node, values, unknown);
  const bool hasCondition = node.inputs.size() > 1 && !node.inputs[1].empty();
  if (hasCondition && values.back().tensor.integer(0) == 0)
    return 0;
  if (node.inputs.empty() || node.inputs[0].empty()) {
    unknown = {"it has none: it runs until a condition changes",
               "an export without control flow: torch.jit.trace or dynamo"};
    return std::nullopt;
  }
  return std::max<int64_t>(0, values[0].tensor.integer(0));
}

Conditions findConditions(const ModelFile &file, const Separation &separation, const Recipe &recipe,
                          mlir::MLIRContext &context) {
  Conditions found;
  auto decides = [](const NodeProto &node) {
    return isOnnx(node, "If") || isOnnx(node, "Loop") || isOnnx(node, "Scan");
  };
  bool any = any_of(file.graph().node(), decides);
  for (const onnx::FunctionProto &function : file.model().functions())
    any = any || any_of(function.node(), decides);
  if (!any)
    return found;
  while (true) {
    Report ignored; // all is looked at again when branches are known
    std::unique_ptr<Graph> graph = Graph::build(file, found.choices, ignored);
    if (!graph)
      return found;
    std::vector<const GraphNode *> open;
    for (const GraphNode *node : graph->nodes())
      if (isDecided(*node))
        open.push_back(node);
    auto decisions = decideParameters(file, *graph, separation, recipe, ignored);
    auto inputs = resolveInputs(file, recipe, ignored);
    bool hasSizes = inputs.has_value();
    if (!decisions)
      decisions.emplace();
    if (!inputs)
      inputs.emplace();
    std::vector<std::string> names;
    for (const GraphNode *node : open)
      llvm::append_range(names, deciding(*node));
    std::vector<Known> values = evaluateValues(file, *graph, *decisions, *inputs, names, context);
    found.unknown.clear();
    size_t before = found.choices.size();
    ArrayRef<Known> rest = values;
    for (const GraphNode *node : open) {
      const size_t count = deciding(*node).size();
      Unknown unknown;
      if (auto choice = choiceOf(*node, rest.take_front(count), unknown))
        found.choices[node->key()] = *choice;
      else if (hasSizes)
        found.unknown[node->key()] = unknown;
      rest = rest.drop_front(count);
    }
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
    for (const auto &input : branch.input())
      renamed.erase(input.name());
    for (const NodeProto &node : branch.node())
      for (const std::string &output : node.output())
        renamed.erase(output);
    google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
    for (const onnx::TensorProto &tensor : branch.initializer()) {
      std::string why;
      const bool isBranch = isOnnx(owner, "If");
      std::unique_ptr<TensorBytes> values =
          isBranch || isOnnx(owner, "Loop") || isOnnx(owner, "Scan") ? tensorBytes(tensor, why)
                                                                     : nullptr;
      if (!values) { // of what is not supported, or wrong: whoever reads it says so
        *kept.Add() = tensor;
        renamed.erase(tensor.name());
        continue;
      }
      std::string name = tensor.name();
      for (int i = 2; !taken.insert(name).second; ++i)
        name = tensor.name() + "_" + std::to_string(i);
      renamed[tensor.name()] = values->name = name;
      separation.notes[name] = (isBranch ? "of a branch of " : "of the body of ") +
                               owner.op_type() + " '" + owner.name() + "'";
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
