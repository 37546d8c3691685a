// SPDX-License-Identifier: Apache-2.0
//
// ONNX Gemm: alpha * a' * b' + beta * c.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importGemm(OnnxNode &node) {
  Builder &builder = node.builder();
  Value a = node.input(0), b = node.input(1);
  ArrayRef<int64_t> left = tensorType(a).getShape(), right = tensorType(b).getShape();
  if (left.size() != 2 || right.size() != 2)
    return node.error("operands have ranks " + llvm::Twine(left.size()) + " and " +
                      llvm::Twine(right.size()) + ", expected 2");
  Type type = tensorType(a).getElementType();
  if (tensorType(b).getElementType() != type)
    return node.error("operands have different element types", "insert a Cast before the node");
  bool transposeA = node.integer("transA", 0), transposeB = node.integer("transB", 0);
  if (left[transposeA ? 0 : 1] != right[transposeB ? 1 : 0])
    return node.error("contracted sizes are " + llvm::Twine(left[transposeA ? 0 : 1]) + " and " +
                      llvm::Twine(right[transposeB ? 1 : 0]));
  Value result = builder.matmul(a, b, transposeA, transposeB);
  double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  if (alpha != 1)
    result = builder.scale(result, alpha);
  if (!node.hasInput(2) || beta == 0)
    return SmallVector<Value>{result};
  Value c = node.input(2);
  ArrayRef<int64_t> shape = tensorType(result).getShape(), own = tensorType(c).getShape();
  bool fits = own.size() <= 2 && tensorType(c).getElementType() == type;
  for (size_t i = 0; fits && i < own.size(); ++i)
    fits = own[own.size() - 1 - i] == 1 || own[own.size() - 1 - i] == shape[1 - i];
  if (!fits)
    return node.error("operand c does not broadcast to " + llvm::Twine(shape[0]) + "x" +
                      llvm::Twine(shape[1]));
  if (beta != 1)
    c = builder.scale(c, beta);
  return SmallVector<Value>{builder.add(result, builder.broadcastTo(c, shape))};
}

static OnnxWeight weightsOfGemm(unsigned input, ArrayRef<int64_t>) {
  return input == 2 ? OnnxWeight::bias : OnnxWeight::matrix;
}

static OnnxRegistration gemm = OnnxRegistration("Gemm", 6, importGemm, weightsOfGemm).takesFloats();

} // namespace trainc::nn
