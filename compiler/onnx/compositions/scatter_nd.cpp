// SPDX-License-Identifier: Apache-2.0
//
// ONNX ScatterND with known indices: each row of the result is one of the operand or of the
// updates, of several updates of one row the last.
#include "compiler/onnx/compositions/known_indices.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importScatterNd(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0), updates = node.input(2);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  if (node.string("reduction", "none") != "none")
    return node.error("only plain replacement is supported, not reduction '" +
                      llvm::Twine(node.string("reduction", "none")) + "'");
  Tensor indices = node.constant(1);
  if (!indices || indices.type().getRank() == 0 ||
      indices.shape().back() > static_cast<int64_t>(shape.size()))
    return node.error("its indices must be known when the model is compiled");
  int64_t depth = indices.shape().back(), tuples = computeProduct(indices.shape().drop_back());
  SmallVector<int64_t> table{computeProduct(shape.take_front(depth))}, changed{tuples};
  llvm::append_range(table, shape.drop_front(depth));
  llvm::append_range(changed, shape.drop_front(depth));
  if (tensorType(updates).getNumElements() != computeProduct(changed) ||
      tensorType(updates).getElementType() != tensorType(x).getElementType())
    return node.error("its updates do not fit operand and indices");
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, table[0]));
  std::vector<int64_t> values = indices.integers();
  for (int64_t t = 0; t < tuples; ++t) {
    auto row = rowOf(ArrayRef(values).slice(t * depth, depth), shape);
    if (!row)
      return node.error("an index is out of range");
    rows[*row] = table[0] + t;
  }
  Value parts[] = {builder.reshape(x, table), builder.reshape(updates, changed)};
  Value both = builder.create<ConcatOp>(ValueRange(parts), 0);
  return SmallVector<Value>{gatherRows(node, both, rows, shape)};
}

static OnnxRegistration scatterNd("ScatterND", 11, importScatterNd);

} // namespace trainc::nn
