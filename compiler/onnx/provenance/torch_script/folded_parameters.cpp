// SPDX-License-Identifier: Apache-2.0
//
// Problem: exporters of models in inference mode fold functions of parameters into initializers of
// their own. Trained, those would part from the parameters, or stand for several.
//
// Method: a filter under an invented name is what a norm was folded into. Where the parameter
// itself is in the file too, its rows, multiples and other axes show by their values.
//
// Weakness: of other functions (a root, a norm), and where only the function is in the file,
// nothing tells (docs/unrecorded.md).
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/provenance/doubts.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;

constexpr char kFusedByTf2onnx[] = "_fused_bn";

// Exporters of models in inference mode fold batch norm, and weight norm, into filters: what they
// write is a function of several parameters. PyTorch's TorchScript exporter then invents a name (in
// files whose every name is a number, numbers are the modules' own), tf2onnx says so in it.
static bool isFoldedFilter(const Graph &graph, const Decision &decision, bool namesModules) {
  StringRef name = decision.name();
  return (isTorchScriptName(name) || name.contains(kFusedByTf2onnx) ||
          (decision.exporterMade && namesModules && !isPaddleName(name))) &&
         isUsedAs(graph, decision, OnnxWeight::filter);
}

static void findFoldedFilters(const Decisions &decisions, const Graph &graph, Doubts &doubts) {
  bool namesModules = any_of(decisions, [](const auto &decision) {
    return decision->isParameter() && !decision->exporterMade && decision->name().contains('.');
  });
  for (const auto &decision : decisions)
    if (decision->role == Role::trained &&
        !doubts.has(Finding::computedByExporter, decision->name()) &&
        isFoldedFilter(graph, *decision, namesModules))
      doubts.add(Finding::computedByExporter, decision->name(),
                 decision->name().contains(kFusedByTf2onnx)
                     ? "a filter with the batch norm after it"
                     : "a filter with the batch norm or weight norm after it, or a parameter that "
                       "is not a filter in the module");
}

// Equal but for the axes. What has the same axes, or is the transpose, is tied or apart by now.
static bool hasOtherAxes(const TensorBytes &folded, const TensorBytes &origin) {
  if (folded.count != origin.count || folded.shape == origin.shape || isUniform(folded) ||
      (folded.shape.size() == 2 && origin.shape.size() == 2))
    return false;
  TensorBytes one = withoutSingleAxes(folded), other = withoutSingleAxes(origin);
  return (folded.dataType == origin.dataType && folded.bytes == origin.bytes) ||
         sameValues(one, other, /*transposed=*/true);
}

static bool isMultipleInAnyOrder(const TensorBytes &folded, const TensorBytes &origin) {
  if (folded.count != origin.count)
    return false;
  TensorBytes one = withoutSingleAxes(folded), other = withoutSingleAxes(origin);
  return any_of(ArrayRef<bool>{false, true}, [&](bool transposed) {
    return isMultipleOf(one, other, transposed) && !sameValues(one, other, transposed);
  });
}

// PyTorch's TorchScript exporter folds a function of a parameter under an invented name. Where the
// parameter itself is in the file too, under its own name or folded, rows of it and multiples show.
// Weights of recurrent layers always have other axes: sharedRecurrent looks at those.
static void findFoldedParts(const Decisions &decisions, const Graph &graph, Doubts &doubts) {
  auto isOfRecurrent = [&](const Decision &decision) {
    return any_of(graph.uses(decision.name()), [&](const Use &use) {
      return !recurrentLayout(*use.node, use.index, decision.tensor->shape).empty();
    });
  };
  auto isTrained = [](const auto &decision) { return decision->role == Role::trained; };
  for (const auto &folded : llvm::make_filter_range(decisions, isTrained))
    for (const auto &origin : llvm::make_filter_range(decisions, isTrained)) {
      bool isFolded = isTorchScriptName(origin->name());
      if (folded == origin || !isTorchScriptName(folded->name()) ||
          (origin->exporterMade && !isFolded))
        continue;
      const TensorBytes &one = *folded->tensor, &other = *origin->tensor;
      const std::string name = "'" + origin->name().str() + "'";
      const std::string relation = isPartOf(one, other)               ? "a part of " + name
                                   : isMultipleInAnyOrder(one, other) ? "a multiple of " + name
                                   : hasOtherAxes(one, other) && !isOfRecurrent(*folded)
                                       ? name + " with other axes"
                                       : "";
      // Of two that are folded, each is a multiple of the other.
      if (!relation.empty() &&
          !(isFolded && doubts.has(Finding::computedByExporter, origin->name())))
        doubts.add(Finding::computedByExporter, folded->name(), relation);
    }
}

std::vector<Use> usesBehindViews(const Graph &graph, StringRef name) {
  auto isView = [](const Use &use) {
    return use.index == 0 && use.node->domain.empty() &&
           llvm::StringSwitch<bool>(use.node->opType())
               .Cases("Split", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Slice", true)
               .Cases("Gather", "Expand", "Identity", "Transpose", "Cast", true)
               .Default(false);
  };
  std::vector<Use> result;
  std::vector<std::string> left{name.str()};
  llvm::StringSet<> seen;
  while (!left.empty()) {
    std::string value = std::move(left.back());
    left.pop_back();
    if (value.empty() || !seen.insert(value).second)
      continue;
    for (const Use &use : graph.uses(value)) {
      result.push_back(use);
      if (isView(use))
        left.insert(left.end(), use.node->outputs.begin(), use.node->outputs.end());
    }
  }
  return result;
}

// The number that an initializer holds, also after Identity nodes; nullopt for other values.
static std::optional<double> numberAt(StringRef value, const Decisions &decisions,
                                      const Graph &graph) {
  for (const GraphNode *node = graph.producer(value); node; node = graph.producer(value)) {
    if (!node->domain.empty() || node->opType() != "Identity")
      return std::nullopt;
    value = node->inputs[0];
  }
  auto found = llvm::find_if(decisions, [&](const auto &one) { return one->name() == value; });
  if (found == decisions.end() || (*found)->tensor->count != 1)
    return std::nullopt;
  return firstNumber(*(*found)->tensor);
}

// var() multiplies a mean by n and divides by n - 1: of a parameter, the exporter folds both.
static bool isSampleSize(const Decision &decision, const Decisions &decisions, const Graph &graph) {
  const double size = firstNumber(*decision.tensor);
  auto isAt = [&](const GraphNode *node, StringRef opType, unsigned index, double number) {
    return node && node->domain.empty() && node->opType() == opType &&
           numberAt(node->inputs[index], decisions, graph) == number;
  };
  std::vector<Use> uses = usesBehindViews(graph, decision.name());
  llvm::erase_if(uses, [](const Use &use) { return use.node->opType() == "Identity"; });
  return size == std::trunc(size) && !uses.empty() && all_of(uses, [&](const Use &use) {
           const GraphNode &node = *use.node;
           if (use.index == 1 && isAt(&node, "Div", 1, size))
             return isAt(graph.producer(node.inputs[0]), "Mul", 1, size + 1);
           return use.index == 1 && isAt(&node, "Mul", 1, size) && !node.outputs.empty() &&
                  !graph.uses(node.outputs[0]).empty() &&
                  all_of(graph.uses(node.outputs[0]), [&](const Use &next) {
                    return next.index == 0 && isAt(next.node, "Div", 1, size - 1);
                  });
         });
}

// The exporter folds: there nobody may train the rest unasked.
void findFoldedConstants(const Decisions &decisions, const ModelFile &file, const Graph &graph,
                         Doubts &doubts) {
  auto isSuspect = [&](const Decision &decision) {
    const TensorBytes &tensor = *decision.tensor;
    if (decision.doubt == Doubt::foldedNumber)
      return !isSampleSize(decision, decisions, graph);
    return decision.doubt == Doubt::unlearnt &&
           (isFromPyTorch(file) || isTorchScriptName(decision.name())) &&
           (!isUniform(tensor) || isCalculatedWith(graph, decision, isFromPyTorch(file))) &&
           seriesIn(tensor).empty();
  };
  for (const auto &decision : decisions)
    if (decision->role == Role::constant && isSuspect(*decision))
      doubts.add(Finding::foldedConstants, decision->name(),
                 "without a module's name, and no operator learns it");
}

void findFolded(const Decisions &decisions, const Graph &graph, Doubts &doubts) {
  findFoldedParts(decisions, graph, doubts);
  findFoldedFilters(decisions, graph, doubts);
}

} // namespace trainc::reader
