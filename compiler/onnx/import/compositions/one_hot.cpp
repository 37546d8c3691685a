// SPDX-License-Identifier: Apache-2.0
//
// ONNX OneHot: the second of two values where an index along the new axis is given, elsewhere the
// first. Indices may be computed when the step runs; those out of range select nothing. From opset
// 11 on negative ones count from the end.
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace trainc::nn {

// The depth may have any type of numbers; fails with an error.
static FailureOr<int64_t> depthOf(OnnxNode &node) {
  FailureOr<double> depth = node.knownNumber(1, "depth");
  if (failed(depth))
    return failure();
  double number = *depth;
  if (!(number >= 1 && number <= 0x1p40))
    return node.error("depth is " + llvm::Twine(llvm::formatv("{0}", number).str()) +
                      ", expected 1 to 2^40");
  return static_cast<int64_t>(number);
}

static OnnxResults importOneHot(OnnxNode &node) {
  Builder &builder = node.builder();
  FailureOr<int64_t> depth = depthOf(node);
  if (failed(depth))
    return failure();
  Value given = node.input(0), values = node.input(2);
  int64_t rank = tensorType(given).getRank();
  FailureOr<int64_t> axis = axisOf(node, rank + 1, -1);
  if (failed(axis))
    return failure();
  if (tensorType(values).getShape() != ArrayRef<int64_t>{2})
    return node.error("values are not two, off and on");
  SmallVector<int64_t> shape(tensorType(given).getShape()), dimensions;
  shape.insert(shape.begin() + *axis, *depth);
  for (int64_t d = 0; d <= rank; ++d)
    if (d != *axis)
      dimensions.push_back(d);
  if (failed(countElements(node, shape)))
    return failure();
  auto i64 = IntegerType::get(builder.op().getContext(), 64);
  Value indices = builder.cast(given, i64);
  Type indexType = indices.getType();
  if (node.opset() >= 11) {
    Value negative = builder.create<LessOp>(indices, builder.constant(0, indexType));
    Value counted = builder.add(indices, builder.constant(static_cast<double>(*depth), indexType));
    indices = builder.select(negative, counted, indices);
  }
  indices = builder.broadcast(indices, dimensions, shape);
  Value place = builder.create<IotaOp>(RankedTensorType::get(shape, i64), *axis);
  auto value = [&](int64_t index) {
    Value one = builder.slice(values, 0, index, 1);
    return builder.broadcast(builder.reshape(one, {}), {}, shape);
  };
  return SmallVector<Value>{
      builder.select(builder.create<EqualOp>(indices, place), value(1), value(0))};
}

// Last stands what is written for the chosen class, and what for the others.
static OnnxRegistration oneHot =
    OnnxRegistration("OneHot", 9, importOneHot, settingsFrom<2>).mustKnow(1, "depth");

} // namespace trainc::nn
