// SPDX-License-Identifier: Apache-2.0
//
// ONNX Trilu: a triangle of the last two dimensions, zeros elsewhere.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importTrilu(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  RankedTensorType type = tensorType(x);
  if (type.getRank() < 2)
    return node.error("its operand has rank " + llvm::Twine(type.getRank()) +
                      ", expected 2 or more");
  int64_t diagonal = 0;
  if (node.hasInput(1)) {
    FailureOr<int64_t> known = node.knownInteger(1, "diagonal");
    if (failed(known))
      return failure();
    diagonal = *known;
  }
  bool upper = node.integer("upper", 1);
  ArrayRef<int64_t> matrix = type.getShape().take_back(2);
  auto indices = RankedTensorType::get(matrix, builder.op().getI64Type());
  Value distance =
      builder.sub(builder.create<IotaOp>(indices, 1), builder.create<IotaOp>(indices, 0));
  // Beyond the corners every diagonal is the same.
  int64_t nearest = std::clamp(diagonal, -matrix[0], matrix[1]);
  Value limit = builder.constant(static_cast<double>(nearest), indices);
  Value mask = upper ? builder.create<GreaterOrEqualOp>(distance, limit)
                     : builder.create<LessOrEqualOp>(distance, limit);
  Value zero = builder.constant(0, type);
  return SmallVector<Value>{builder.select(builder.broadcastTo(mask, type.getShape()), x, zero)};
}

static OnnxRegistration trilu = OnnxRegistration("Trilu", 14, importTrilu).mustKnow(1, "diagonal");

} // namespace trainc::nn
