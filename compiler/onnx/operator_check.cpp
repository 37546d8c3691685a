// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a model can be imported at all, and what would help where one cannot.
#include "compiler/onnx/importer.h"
#include "dialects/nn/onnx_node.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

static bool isBuiltIn(const GraphNode &node) {
  return node.domain.empty() &&
         llvm::StringSwitch<bool>(node.opType())
             .Cases("SplitToSequence", "SequenceAt", "SequenceConstruct", true)
             .Default(false);
}

static StringRef adviceFor(StringRef opType) {
  return llvm::StringSwitch<StringRef>(opType)
      .Cases("If", "Loop", "Scan", "an export without control flow: torch.jit.trace or dynamo")
      .Cases("LSTM", "GRU", "RNN", "the recurrence written out in the module")
      .Cases("QuantizeLinear", "DequantizeLinear", "the model before quantization")
      .Default("trainc --list-operators, which prints what can be imported");
}

bool checkOperators(const Graph &graph, Report &report) {
  size_t before = report.size();
  for (const GraphNode *node : graph.nodes()) {
    int64_t oldest = 0;
    if (node->domain.empty() && !servesOpset(node->opset)) { // a local function may have its own
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node),
                         "the operator set is not among those supported");
      continue;
    }
    if (isBuiltIn(*node) ||
        nn::findOnnxImporter(node->domain, node->opType(), node->opset, &oldest)) {
      if (std::string why = checkInputs(*node); !why.empty())
        (void)report.error(ExitCode::unreadableModel, graph.subject(*node), why);
      continue;
    }
    if (node->opset == 0 && !node->domain.empty())
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node),
                         "unsupported operator of domain '" + node->domain + "'",
                         "an export that uses ONNX's own operators only");
    else if (oldest)
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node),
                         "the operator is supported from opset " + Twine(oldest) + " on",
                         "export again with opset_version=20");
    else
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node), "unsupported operator",
                         adviceFor(node->opType()));
  }
  return report.size() == before;
}

} // namespace trainc::reader
