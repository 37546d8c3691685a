// SPDX-License-Identifier: Apache-2.0
//
// ONNX Trilu: a triangle of the last two dimensions, zeros elsewhere.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importTrilu(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  RankedTensorType type = tensorType(x);
  if (type.getRank() < 2)
    return node.error("its operand has rank " + llvm::Twine(type.getRank()) +
                      ", expected 2 or more");
  SmallVector<int64_t> diagonal{0};
  if (node.hasInput(1)) {
    auto known = node.integers(1);
    if (!known || known->size() != 1)
      return node.error("its diagonal must be known when the model is compiled");
    diagonal = *known;
  }
  bool upper = node.integer("upper", 1);
  ArrayRef<int64_t> matrix = type.getShape().take_back(2);
  SmallVector<bool> kept;
  for (int64_t row = 0; row < matrix[0]; ++row)
    for (int64_t column = 0; column < matrix[1]; ++column)
      kept.push_back(upper ? column - row >= diagonal[0] : column - row <= diagonal[0]);
  auto maskType = RankedTensorType::get(matrix, builder.op().getI1Type());
  Value mask = builder.constant(DenseElementsAttr::get(maskType, ArrayRef<bool>(kept)));
  Value zero = builder.constant(0, type);
  return SmallVector<Value>{builder.select(builder.broadcastTo(mask, type.getShape()), x, zero)};
}

static OnnxRegistration trilu("Trilu", 14, importTrilu);

} // namespace trainc::nn
