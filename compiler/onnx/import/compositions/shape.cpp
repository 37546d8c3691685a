// SPDX-License-Identifier: Apache-2.0
//
// ONNX Shape and Size: the type is enough.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importShape(OnnxNode &node) {
  ArrayRef<int64_t> shape = tensorType(node.input(0)).getShape();
  int64_t rank = shape.size(), start = node.integer("start", 0), end = node.integer("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  return SmallVector<Value>{node.integerLiteral(shape.slice(start, end - start), end - start)};
}

static OnnxResults importSize(OnnxNode &node) {
  return SmallVector<Value>{node.integerLiteral(tensorType(node.input(0)).getNumElements(), {})};
}

static OnnxRegistration shape = OnnxRegistration("Shape", 1, importShape).gradientOf({});
static OnnxRegistration size = OnnxRegistration("Size", 1, importSize).gradientOf({});

} // namespace trainc::nn
