// SPDX-License-Identifier: Apache-2.0
//
// ONNX GatherND with known indices: a gather of rows of the operand with its indexed dimensions
// joined.
#include "compiler/onnx/compositions/known_indices.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importGatherNd(OnnxNode &node) {
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  Tensor indices = node.constant(1);
  int64_t batch = node.integer("batch_dims", 0);
  if (!indices || indices.type().getRank() <= batch)
    return node.error("its indices must be known when the model is compiled");
  int64_t depth = indices.shape().back(), joined = batch + depth;
  if (joined > static_cast<int64_t>(shape.size()) ||
      indices.shape().take_front(batch) != shape.take_front(batch))
    return node.error("its indices do not fit an operand of rank " + llvm::Twine(shape.size()));
  std::vector<int64_t> values = indices.integers(), rows;
  int64_t tuples = computeProduct(indices.shape().drop_back());
  int64_t each = computeProduct(indices.shape().drop_back().drop_front(batch));
  SmallVector<int64_t> batchStrides = computeStrides(shape.take_front(batch));
  for (int64_t t = 0; t < tuples; ++t) {
    SmallVector<int64_t> tuple;
    for (int64_t d = 0; d < batch; ++d)
      tuple.push_back(t / each / batchStrides[d] % shape[d]);
    llvm::append_range(tuple, ArrayRef(values).slice(t * depth, depth));
    auto row = rowOf(tuple, shape);
    if (!row)
      return node.error("an index is out of range");
    rows.push_back(*row);
  }
  SmallVector<int64_t> table{computeProduct(shape.take_front(joined))};
  SmallVector<int64_t> result(indices.shape().drop_back());
  llvm::append_range(table, shape.drop_front(joined));
  llvm::append_range(result, shape.drop_front(joined));
  return SmallVector<Value>{gatherRows(node, node.builder().reshape(x, table), rows, result)};
}

static OnnxRegistration gatherNd("GatherND", 11, importGatherNd);

} // namespace trainc::nn
