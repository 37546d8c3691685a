// SPDX-License-Identifier: Apache-2.0
//
// ONNX GatherND: a gather of rows of the operand with its indexed dimensions joined.
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

static OnnxRegistration gatherNd("GatherND", 11, importGatherNd);

} // namespace trainc::nn
