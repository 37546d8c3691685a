// SPDX-License-Identifier: Apache-2.0
//
// Operators' declarations in the ONNX library, which end at opset 17: enough to know which inputs
// must be there. Importers need not check that.
#include "compiler/onnx/graph.h"
#include <onnx/defs/schema.h>

namespace trainc::reader {

constexpr int64_t kNewestDeclared = 17;

// Operators that are newer, and those whose inputs differ then.
static size_t laterInputs(const GraphNode &node) { return node.opType() == "Constant" ? 0 : 1; }

std::string checkInputs(const GraphNode &node) {
  if (!node.domain.empty())
    return "";
  const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(
      node.proto->op_type(), static_cast<int>(std::min(node.opset, kNewestDeclared)));
  if (!schema && node.opset <= kNewestDeclared)
    return "operator set " + std::to_string(node.opset) + " has no such operator";
  size_t least = schema ? schema->min_input() : laterInputs(node);
  bool variadic = schema && !schema->inputs().empty() &&
                  schema->inputs().back().GetOption() == onnx::OpSchema::Variadic;
  for (size_t i = 0; i < std::max(least, node.inputs.size()); ++i) {
    bool given = i < node.inputs.size() && !node.inputs[i].empty();
    bool optional = schema && i < schema->inputs().size() &&
                    schema->inputs()[i].GetOption() == onnx::OpSchema::Optional;
    bool beyond = schema && !variadic && i >= schema->inputs().size() && i >= least;
    if (!given && !optional && !beyond && (schema || i < least))
      return "input " + std::to_string(i) + " is missing";
  }
  return "";
}

} // namespace trainc::reader
