// SPDX-License-Identifier: Apache-2.0
//
// ONNX Hardmax: one at the first largest element of each row, elsewhere zero.
#include "compiler/onnx/import/compositions/extreme_index.h"

using namespace mlir;

namespace trainc::nn {

static Value hardmax(Builder &builder, Value x, int64_t dimension) {
  Value first = extremeIndex(builder, x, dimension, Extreme::largest);
  Value hit = builder.create<EqualOp>(indicesAlong(builder, x, dimension),
                                      builder.expand(first, dimension, tensorType(x).getShape()));
  return builder.cast(hit, tensorType(x).getElementType());
}

static OnnxResults importHardmax(OnnxNode &node) {
  Value x = node.input(0);
  FailureOr<int64_t> axis = axisOf(node, tensorType(x).getRank(), -1);
  if (failed(axis))
    return failure();
  return SmallVector<Value>{hardmax(node.builder(), x, *axis)};
}

// Below opset 13: dimensions from `axis` on are one row.
static OnnxResults importHardmaxTogether(OnnxNode &node) {
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  FailureOr<int64_t> axis = axisOf(node, shape.size(), 1);
  if (failed(axis))
    return failure();
  SmallVector<int64_t> flat(shape.take_front(*axis));
  flat.push_back(1);
  for (int64_t size : shape.drop_front(*axis))
    flat.back() *= size;
  Value y = hardmax(node.builder(), node.builder().reshape(x, flat), *axis);
  return SmallVector<Value>{node.builder().reshape(y, shape)};
}

static OnnxRegistration hardmaxTogether =
    OnnxRegistration("Hardmax", 1, importHardmaxTogether).gradientOf({});
static OnnxRegistration hardmaxAlongAxis =
    OnnxRegistration("Hardmax", 13, importHardmax).gradientOf({});

} // namespace trainc::nn
