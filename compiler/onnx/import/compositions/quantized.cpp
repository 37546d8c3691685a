// SPDX-License-Identifier: Apache-2.0
//
// Operators on weights that the file has as integers with scales. The reader takes such a weight as
// a frozen parameter of floats (parameters/quantized_weights.h), so that here it is one input.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal otherWeights({"DequantizeLinear"},
                                      "anything but a weight with constant scales");

// The reader takes the weight for its result, and refuses others before this.
static OnnxResults importDequantizeLinear(OnnxNode &node) {
  return node.error(otherWeights.told("dequantizes what is no weight of the file"));
}

static OnnxResults importMatMulNBits(OnnxNode &node) {
  Builder &builder = node.builder();
  Value a = node.input(0), weight = node.input(1);
  auto type = tensorType(a);
  const int64_t inner = tensorType(weight).getDimSize(1);
  if (!isa<FloatType>(type.getElementType()) || type.getRank() < 2)
    return node.error("its input is no tensor of floats with two axes or more",
                      "a Cast or a Reshape before the node");
  if (type.getShape().back() != inner)
    return node.error("its input is " + llvm::Twine(type.getShape().back()) +
                      " wide, but its weight takes " + llvm::Twine(inner));
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = tensorType(weight).getDimSize(0);
  const int64_t rows = type.getNumElements() / inner;
  Value product = builder.reshape(
      builder.matmul(builder.reshape(a, {rows, inner}), weight, false, true), shape);
  if (node.hasInput(5))
    product = builder.add(product, builder.broadcastTo(node.input(5), shape));
  return SmallVector<Value>{product};
}

static OnnxResults importGatherBlockQuantized(OnnxNode &node) {
  Value table = node.input(0), indices = node.input(1);
  if (!isa<IntegerType>(tensorType(indices).getElementType()))
    return node.error("its indices are no integers", "insert a Cast before the node");
  const int64_t rows = tensorType(table).getDimSize(0);
  if (auto known = node.integers(1))
    for (int64_t index : *known)
      if (index < 0 || index >= rows)
        return node.error("index " + llvm::Twine(index) + " is out of range for size " +
                          llvm::Twine(rows));
  return SmallVector<Value>{node.builder().create<GatherOp>(table, indices)};
}

static OnnxRegistration dequantizeLinear("DequantizeLinear", 10, importDequantizeLinear);
static OnnxRegistration ofMicrosoft("DequantizeLinear", 1, importDequantizeLinear, nullptr,
                                    "com.microsoft");
static OnnxRegistration matMulNBits =
    OnnxRegistration("MatMulNBits", 1, importMatMulNBits, nullptr, "com.microsoft").gradientOf({0});
static OnnxRegistration gatherBlockQuantized =
    OnnxRegistration("GatherBlockQuantized", 1, importGatherBlockQuantized, nullptr,
                     "com.microsoft")
        .gradientOf({});

} // namespace trainc::nn
