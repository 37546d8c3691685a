// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a model can be imported at all, and what would help where one cannot.
#include "compiler/onnx/file/file_check.h"
#include "compiler/onnx/file/schema.h"
#include "compiler/onnx/import/built_in.h"
#include "compiler/onnx/import/importer.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

constexpr StringRef kWithBodies[] = {"If", "Loop", "Scan"};
constexpr StringRef kOfSequences[] = {"ConcatFromSequence", "SequenceAt",     "SequenceConstruct",
                                      "SequenceEmpty",      "SequenceErase",  "SequenceInsert",
                                      "SequenceLength",     "SplitToSequence"};

static const nn::OnnxRefusal unknownCondition({"If"}, "a condition that is not known when the "
                                                      "model is compiled");
static const nn::OnnxRefusal unknownTimes({"Loop", "Scan"}, "a number of iterations that is not "
                                                            "known when the model is compiled");

std::vector<BuiltIn> builtInOperators() {
  std::vector<BuiltIn> all;
  for (ArrayRef<StringRef> names : {ArrayRef(kWithBodies), ArrayRef(kOfSequences)})
    for (StringRef name : names)
      all.push_back({name, firstOpset(name)});
  return all;
}

static bool isOfSequences(const GraphNode &node) {
  return node.domain.empty() && llvm::is_contained(kOfSequences, node.opType());
}

static StringRef adviceFor(const GraphNode &node) {
  if (node.domain == "com.microsoft" || node.domain == "com.ms.internal.nhwc")
    return "the file before the optimizer of ONNX Runtime or Optimum, which writes this operator";
  if (node.domain == "ai.onnx.ml")
    return "a network: this is not a model that gradients train (a tree, a classifier of vectors)";
  if (!node.domain.empty())
    return "its functions, forward and backward, by trainc --operator";
  return llvm::StringSwitch<StringRef>(node.opType())
      .Cases("QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
             "QLinearMatMul", "QLinearConv",
             "the model before quantization: this file is quantized")
      .Default(kListsOperators);
}

// Where no importer serves a node.
static LogicalResult reportMissing(const Graph &graph, const GraphNode &node, int64_t oldest,
                                   Report &report) {
  Subject subject = graph.subject(node);
  if (node.opType().empty())
    return report.error(ExitCode::unreadableModel, subject, "names no operator");
  if (oldest)
    return report.error(ExitCode::unsupportedModel, subject,
                        "the operator is supported from opset " + Twine(oldest) + " on",
                        "export again with opset_version=" + Twine(std::max<int64_t>(oldest, 20)));
  if (node.domain.empty() && !findDeclaration(node.opType(), node.opset)) {
    int64_t first = firstOpset(node.opType());
    std::string message = "ONNX has no operator '" + node.opType().str() + "'";
    return report.error(ExitCode::unreadableModel, subject,
                        first ? message + " before operator set " + std::to_string(first)
                              : message);
  }
  if (node.opset == 0 && !node.domain.empty())
    return report.error(ExitCode::unsupportedModel, subject,
                        "unsupported operator of domain '" + node.domain + "'", adviceFor(node));
  return report.error(ExitCode::unsupportedModel, subject, kUnsupportedOperator, adviceFor(node));
}

bool isImportable(const GraphNode &node) {
  if (isOfSequences(node))
    return checkNode(node).empty();
  if (!node.domain.empty())
    return nn::findOnnxImporter(node.domain, node.opType(), node.opset) != nullptr;
  return servesOpset(node.opset) && nn::findOnnxImporter("", node.opType(), node.opset) &&
         checkNode(node).empty();
}

// An `If` that is left has no known condition, a loop no known number of iterations.
static void checkUndecided(const Graph &graph, const GraphNode &node, const Conditions &conditions,
                           Report &report) {
  if (std::string why = checkNode(node); !why.empty()) {
    (void)report.error(ExitCode::unreadableModel, graph.subject(node), why);
    return;
  }
  auto unknown = conditions.unknown.find(node.key());
  if (unknown != conditions.unknown.end())
    (void)report.error(ExitCode::unsupportedModel, graph.subject(node),
                       (node.isIf() ? unknownCondition.told("its condition")
                                    : unknownTimes.told("how often it runs")) +
                           " must be known when the model is compiled, but " + unknown->second.why,
                       unknown->second.advice);
}

// ONNX has the body of a function mean the same in the model's operator set; others evaluate it in
// either.
static LogicalResult reportOtherSet(const Graph &graph, const GraphNode &node, Report &report) {
  return report.error(ExitCode::unreadableModel, graph.subject(node),
                      "function '" + node.function->name() + "' imports operator set " +
                          Twine(node.opset) + " and the model " + Twine(graph.opset()) +
                          ", in which " + node.opType() + " is not the same",
                      "the function written for the model's operator set, and importing that");
}

bool checkOperators(const Graph &graph, const Conditions &conditions, Report &report) {
  size_t before = report.size();
  for (const GraphNode *node : graph.nodes()) {
    int64_t oldest = 0;
    if ((node->isIf() || node->isLoop() || node->isScan()) && servesOpset(node->opset))
      checkUndecided(graph, *node, conditions, report);
    else if (node->domain.empty() && !servesOpset(node->opset)) // a local function may have its own
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node),
                         "the operator set is not among those supported",
                         "the function in one of operator sets " + Twine(kOldestOpset) + " to " +
                             Twine(kNewestOpset));
    else if (!isOfSequences(*node) &&
             !nn::findOnnxImporter(node->domain, node->opType(), node->opset, &oldest))
      (void)reportMissing(graph, *node, oldest, report);
    else if (std::string why = node->domain.empty() ? checkNode(*node) : ""; !why.empty())
      (void)report.error(ExitCode::unreadableModel, graph.subject(*node), why);
    else if (node->function && node->domain.empty() && graph.opset() &&
             !meansTheSame(*node, graph.opset()))
      (void)reportOtherSet(graph, *node, report);
  }
  return report.size() == before;
}

} // namespace trainc::reader
