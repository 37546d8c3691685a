// SPDX-License-Identifier: Apache-2.0
//
// What operators learn in a tensor, wherever it stands: as an initializer or the value of a
// Constant node, in a branch, and through nodes that only pass it on.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;

std::vector<Reader> readersIn(const Graph &graph, StringRef value) {
  std::vector<Reader> readers;
  for (const Use &use : graph.uses(value))
    readers.push_back(
        {use.node->domain, use.node->opType(), use.index,
         use.node->outputs.empty() ? "" : StringRef(use.node->outputs[0]),
         use.node->inputs.size() == 2 ? StringRef(use.node->inputs[1 - use.index]) : StringRef()});
  return readers;
}

/// The shape after a node that passes a tensor on; none: it does not.
static std::optional<SmallVector<int64_t>> passedOn(const Reader &reader, ArrayRef<int64_t> shape) {
  if (!reader.domain.empty() || reader.input != 0 || reader.output.empty())
    return std::nullopt;
  if (reader.opType == "Identity" || reader.opType == "Cast")
    return SmallVector<int64_t>(shape);
  if (reader.opType == "Transpose" && shape.size() == 2)
    return SmallVector<int64_t>{shape[1], shape[0]};
  // Of a vector all other axes have one element.
  const bool changesAxes =
      is_contained({"Unsqueeze", "Squeeze", "Reshape", "Transpose"}, reader.opType);
  return changesAxes && count_if(shape, [](int64_t size) { return size > 1; }) == 1
             ? std::optional(SmallVector<int64_t>(shape))
             : std::nullopt;
}

static Learnt learntWithin(StringRef value, ArrayRef<int64_t> shape, Readers readers, int steps) {
  Learnt found;
  for (const Reader &reader : readers(value)) {
    Learnt learnt{nn::onnxWeight(reader.domain, reader.opType, reader.input, shape),
                  reader.opType.str()};
    if (auto next = passedOn(reader, shape); next && !nn::isWeight(learnt.as) && steps > 0)
      learnt = learntWithin(reader.output, *next, readers, steps - 1);
    if (!nn::isWeight(learnt.as))
      continue;
    if (!learnt.isElementwise())
      return learnt;
    if (!nn::isWeight(found.as))
      found = std::move(learnt);
  }
  return found;
}

Learnt learntAs(StringRef value, ArrayRef<int64_t> shape, Readers readers) {
  constexpr int kFarthest = 8; // a file may have cycles, which are refused later
  return learntWithin(value, shape, readers, kFarthest);
}

Learnt learntAs(const Graph &graph, StringRef value, ArrayRef<int64_t> shape) {
  return learntAs(value, shape, [&](StringRef read) { return readersIn(graph, read); });
}

bool isAddedToProduct(const Graph &graph, const Use &use) {
  return isOnnx(*use.node, "Add") && any_of(use.node->inputs, [&](const std::string &input) {
           const GraphNode *maker = graph.producer(input);
           return maker && isOnnx(*maker, "MatMul");
         });
}

bool multiplies(const Use &use, const TensorBytes &tensor) {
  const OnnxWeight weight = weightOf(use, tensor.shape);
  return isOnnx(*use.node, "MatMul") || isOnnx(*use.node, "Einsum") ||
         weight == OnnxWeight::matrix || weight == OnnxWeight::filter ||
         weight == OnnxWeight::table;
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
    const std::string value = std::move(left.back());
    left.pop_back();
    if (value.empty() || !seen.insert(value).second)
      continue;
    for (const Use &use : graph.uses(value)) {
      if (isView(use))
        left.insert(left.end(), use.node->outputs.begin(), use.node->outputs.end());
      else
        result.push_back(use);
    }
  }
  return result;
}

bool isOnlyCompared(const Graph &graph, StringRef name) {
  const std::vector<Use> uses = usesBehindViews(graph, name);
  return !uses.empty() && all_of(uses, [](const Use &use) {
    return use.node->domain.empty() &&
           llvm::StringSwitch<bool>(use.node->opType())
               .Cases("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", true)
               .Cases("Not", "And", "Or", "Xor", "Shape", "Size", "IsNaN", "IsInf", true)
               .Case("Where", use.index == 0)
               .Default(false);
  });
}

// PyTorch's exporters write filling as ConstantOfShape: what they folded may be a token that is put
// beside others, or in their place.
bool isCalculatedWith(const Graph &graph, StringRef name, bool isFromPyTorch) {
  return any_of(usesBehindViews(graph, name), [&](const Use &use) {
    return use.node->domain.empty() &&
           llvm::StringSwitch<bool>(use.node->opType())
               .Cases("Concat", "Where", "Max", "Min", "CumSum", isFromPyTorch)
               .Cases("Add", "Sub", "Mul", "Div", "Pow", true)
               .Cases("MatMul", "Gemm", "Einsum", true)
               .Default(false);
  });
}

} // namespace trainc::reader
