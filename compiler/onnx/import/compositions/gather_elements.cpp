// SPDX-License-Identifier: Apache-2.0
//
// ONNX GatherElements: a gather of single elements.
#include "compiler/onnx/import/compositions/indexed_rows.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importGatherElements(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  FailureOr<int64_t> axis = axisOf(node, shape.size(), 0);
  if (failed(axis))
    return failure();
  FailureOr<IndexedRows> rows = elementsAlongAxis(node, shape, *axis);
  if (failed(rows))
    return failure();
  Value flat = builder.reshape(x, tensorType(x).getNumElements());
  return SmallVector<Value>{
      builder.reshape(builder.create<GatherOp>(flat, rows->tensor(node)), rows->shape)};
}

static OnnxRegistration gatherElements("GatherElements", 11, importGatherElements);

} // namespace trainc::nn
