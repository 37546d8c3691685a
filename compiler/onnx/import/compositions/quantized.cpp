// SPDX-License-Identifier: Apache-2.0
//
// Operators on weights that the file has as integers with scales. The reader takes such a weight as
// a frozen parameter of floats (provenance/quantized_weights.h), so that here it is one input.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal otherWeights({"DequantizeLinear"},
                                      "anything but a weight with constant scales");

// One of a weight needs no importer: its result is the weight.
static OnnxResults importDequantizeLinear(OnnxNode &node) {
  return node.error(
      otherWeights.told("dequantizes what is no weight of the file with constant scales"),
      "the model before quantization");
}

static OnnxResults importMatMulNBits(OnnxNode &node) {
  Builder &builder = node.builder();
  Value a = node.input(0), weight = node.input(1);
  auto type = tensorType(a);
  const int64_t inner = tensorType(weight).getDimSize(1);
  if (type.getRank() < 2 || type.getShape().back() != inner)
    return node.error("its input is " +
                      llvm::Twine(type.getRank() < 1 ? 0 : type.getShape().back()) +
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
  Value indices = node.input(1);
  return SmallVector<Value>{node.builder().create<GatherOp>(node.input(0), indices)};
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
