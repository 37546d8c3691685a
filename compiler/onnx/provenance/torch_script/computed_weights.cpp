// SPDX-License-Identifier: Apache-2.0
//
// Problem: what PyTorch's TorchScript exporter computes from parameters (a mask times a weight, a
// weight plus its transpose) looks like the weight of a plain layer. Trained as one, it would be
// another model than the module.
//
// Method: the exporter leaves the parameters of PyTorch's layers their names, but for the matrix of
// a linear layer before a MatMul, which it transposes: that is one operation. It numbers what it
// computes, in order, so that a number that is missing between two weights is an operation more,
// unless what is between the two has had it. That is known of some operations: the sizes of a
// Reshape have none if they are numbers of the code, and else one each and one more for all; a
// symbolic size has one for each number of the code beside it. Others (a Slice) may have any.
//
// Weakness: the first weight of a file has no number before it where the outputs have names. Sizes
// may have numbers before those of other weights (of three views, all before the second weight), so
// that more than the least cannot be counted.
#include "compiler/onnx/provenance/doubts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <limits>
#include <map>
#include <set>

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;

namespace {

class ComputedWeights {
public:
  ComputedWeights(const Decisions &decisions, const ModelFile &file, const Graph &graph)
      : decisions(decisions), file(file), graph(graph) {
    collectNumbers();
    for (const GraphNode *node : graph.nodes())
      if (node->path)
        collectPath(*node);
  }

  void find(Doubts &doubts) const {
    for (const auto &decision : decisions) {
      if (decision->role != Role::trained || !isTorchScriptName(decision->name()) ||
          doubts.has(Finding::computedByExporter, decision->name()))
        continue;
      if (isOfNamed(*decision) || isOfSeveral(*decision))
        doubts.add(Finding::computedByExporter, decision->name(),
                   "in the place of a layer's parameter");
      else if (isOutsideLayers(*decision))
        doubts.add(Finding::mayBeConstant, decision->name(),
                   "without a module's name and in no layer of its own: perhaps computed from "
                   "parameters");
    }
  }

private:
  // onnx::MatMul_650 -> 650, also 650 alone.
  static std::optional<uint64_t> numberOf(StringRef name) {
    size_t at = isTorchScriptName(name) ? name.rfind('_') + 1 : 0; // npos + 1 is 0
    uint64_t number;
    return name.substr(at).getAsInteger(10, number) ? std::nullopt : std::optional(number);
  }

  void collectNumbers() {
    auto add = [&](const std::string &name) {
      if (isTorchScriptName(name))
        if (std::optional<uint64_t> number = numberOf(name))
          numbers.try_emplace(*number, name);
    };
    for (const auto &tensor : file.graph().initializer())
      add(tensor.name());
    for (const onnx::NodeProto &node : file.graph().node())
      llvm::for_each(node.output(), add);
    for (const onnx::ValueInfoProto &output : file.graph().output())
      if (std::optional<uint64_t> number = numberOf(output.name()))
        numbers[*number] = "";
  }

  void collectPath(const GraphNode &node) {
    bool isLinear = node.domain.empty() && (node.opType() == "MatMul" || node.opType() == "Add");
    if (!isLinear)
      others.insert(*node.path);
    paths.insert(*node.path);
    // MultiheadAttention calls its projection without a module, and cuts the others.
    for (StringRef input : node.inputs) {
      StringRef module = input.rsplit('.').first;
      if (module.ends_with(".out_proj") && !isExporterName(input) &&
          !StringRef(*node.path).ends_with("out_proj"))
        attentions.insert(*node.path);
    }
  }

  bool isOfAttention(const GraphNode &node) const {
    return node.path && attentions.count(*node.path);
  }

  static bool isOnnxNode(const GraphNode *node, StringRef opType) {
    return node && node->domain.empty() && node->opType() == opType;
  }

  // Beside a product, in the place of a linear layer's bias.
  bool isAddedToProduct(const Use &use, const TensorBytes &tensor) const {
    return isOnnxNode(use.node, "Add") && tensor.shape.size() == 1 &&
           any_of(use.node->inputs, [&](const std::string &input) {
             return isOnnxNode(graph.producer(input), "MatMul");
           });
  }

  // In the place of a parameter that has its own name in a layer of PyTorch's.
  bool isOfNamed(const Decision &decision) const {
    return any_of(graph.uses(decision.name()), [&](const Use &use) {
      if (!use.node->domain.empty() || isOfAttention(*use.node))
        return false;
      bool isNamed = llvm::StringSwitch<bool>(use.node->opType())
                         .Cases("Gemm", "LayerNormalization", "BatchNormalization",
                                "InstanceNormalization", true)
                         .Default(false);
      return (isNamed && use.index > 0) || isAddedToProduct(use, *decision.tensor);
    });
  }

  const GraphNode *productOf(StringRef name) const {
    ArrayRef<Use> uses = graph.uses(name);
    bool isMatrix = !uses.empty() && isOnnxNode(uses[0].node, "MatMul") && uses[0].index == 1 &&
                    uses[0].node->path;
    return isMatrix ? uses[0].node : nullptr;
  }

  // The number before its own is missing, and no other value can have had it.
  bool isOfSeveral(const Decision &decision) const {
    const GraphNode *node = productOf(decision.name());
    std::optional<uint64_t> number = numberOf(decision.name());
    if (!node || !number || isOfAttention(*node))
      return false;
    auto at = numbers.find(*number);
    if (at == numbers.end() || at == numbers.begin())
      return false;
    auto [before, name] = *std::prev(at);
    const GraphNode *earlier = productOf(name);
    return before + 1 < *number && (earlier || name.empty()) &&
           !mayHaveHad(*number - before - 1, earlier, *node);
  }

  // Whether so many numbers may be those of what nodes after `from` and before `to` read.
  bool mayHaveHad(uint64_t missing, const GraphNode *from, const GraphNode &to) const {
    if (from && from->number > to.number)
      return true;
    return any_of(graph.nodes(), [&](const GraphNode *node) {
      bool isBetween = (!from || node->number > from->number) && node->number < to.number;
      return isBetween && leastNumbersOf(*node) <= missing;
    });
  }

  // How many numbers the exporter gave to what this node reads, if any; kNone if it gives none.
  uint64_t leastNumbersOf(const GraphNode &node) const {
    constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
    if (!node.domain.empty())
      return 0;
    if (node.opType() == "Reshape" && node.inputs.size() == 2) {
      if (std::optional<uint64_t> sizes = integersIn(node.inputs[1]))
        return *sizes + 1;
      return isOnnxNode(graph.producer(node.inputs[1]), "Concat") ? kNone : 0;
    }
    if (node.opType() == "Concat") // of a symbolic size with others
      return any_of(node.inputs, [&](const std::string &input) { return integersIn(input); })
                 ? 1
                 : kNone;
    bool isPlain = llvm::StringSwitch<bool>(node.opType())
                       .Cases("MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "Pow", "Sqrt", true)
                       .Cases("Tanh", "Relu", "Sigmoid", "Gelu", "Elu", "Softplus", "Erf", true)
                       .Cases("LeakyRelu", "HardSwish", "Softmax", "LayerNormalization", true)
                       .Cases("ReduceMean", "Transpose", "Split", "Identity", true)
                       .Cases("Constant", "Shape", "Gather", "Unsqueeze", true)
                       .Default(false);
    return isPlain ? kNone : 0;
  }

  // The elements of a Constant node's integers; nullopt for other values.
  std::optional<uint64_t> integersIn(StringRef value) const {
    const GraphNode *node = graph.producer(value);
    const onnx::AttributeProto *constant =
        isOnnxNode(node, "Constant") ? node->attribute("value") : nullptr;
    if (!constant || !constant->has_t() || constant->t().data_type() != onnx::TensorProto::INT64 ||
        constant->t().dims_size() != 1)
      return std::nullopt;
    return constant->t().dims(0);
  }

  // Whether nothing else is in the module, nor in modules of its own.
  bool isInnermost(const std::string &path) const {
    auto next = paths.upper_bound(path);
    bool hasOwn = next != paths.end() && (path.empty() || StringRef(*next).starts_with(path + "."));
    return others.count(path) == 0 && !hasOwn;
  }

  // A module that multiplies, and perhaps adds its bias, as a linear layer does.
  bool isLayer(const GraphNode &node) const {
    if (isInnermost(*node.path))
      return true;
    return !node.path->empty() && !node.outputs.empty() &&
           any_of(graph.uses(node.outputs[0]), [&](const Use &use) {
             return isOnnxNode(use.node, "Add") && use.node->path == node.path &&
                    any_of(use.node->inputs, [](StringRef input) {
                      return !isExporterName(input) && input.ends_with("bias");
                    });
           });
  }

  bool isOutsideLayers(const Decision &decision) const {
    return any_of(graph.uses(decision.name()), [&](const Use &use) {
      if (!use.node->path || isOfAttention(*use.node))
        return false;
      OnnxWeight weight = weightOf(use, *decision.tensor);
      return weight == OnnxWeight::table || (weight == OnnxWeight::matrix &&
                                             isOnnxNode(use.node, "MatMul") && !isLayer(*use.node));
    });
  }

  const Decisions &decisions;
  const ModelFile &file;
  const Graph &graph;
  // Values by the numbers that the exporter gave them; "" for an output of the model, which has the
  // last one before those of what it computed.
  std::map<uint64_t, std::string> numbers;
  std::set<std::string> paths, attentions;
  std::set<std::string> others; // paths with nodes that no linear layer has
};

} // namespace

void findComputed(const Decisions &decisions, const ModelFile &file, const Graph &graph,
                  Doubts &doubts) {
  if (isFromPyTorch(file))
    ComputedWeights(decisions, file, graph).find(doubts);
}

} // namespace trainc::reader
