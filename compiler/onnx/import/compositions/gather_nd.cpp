// SPDX-License-Identifier: Apache-2.0
//
// ONNX GatherND: a gather of rows of the operand with its indexed dimensions joined; and
// GatherElements, one of single elements.
#include "compiler/onnx/import/compositions/indexed_rows.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importGatherNd(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t depth = 0;
  FailureOr<IndexedRows> rows = rowsOfTuples(node, shape, node.integer("batch_dims", 0), depth);
  if (failed(rows))
    return failure();
  SmallVector<int64_t> table{computeProduct(shape.take_front(depth))};
  SmallVector<int64_t> result(rows->shape);
  llvm::append_range(table, shape.drop_front(depth));
  llvm::append_range(result, shape.drop_front(depth));
  Value gathered = builder.create<GatherOp>(builder.reshape(x, table), rows->tensor(node));
  return SmallVector<Value>{builder.reshape(gathered, result)};
}

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

static OnnxRegistration gatherNd("GatherND", 11, importGatherNd);
static OnnxRegistration gatherElements("GatherElements", 11, importGatherElements);

} // namespace trainc::nn
