// SPDX-License-Identifier: Apache-2.0
//
// ONNX ScatterND, ScatterElements and Scatter, its older name: updates of rows or of elements.
#include "compiler/onnx/compositions/indexed_rows.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importScatterNd(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0), updates = node.input(2);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t depth = 0;
  FailureOr<IndexedRows> rows = rowsOfTuples(node, shape, 0, depth);
  if (failed(rows))
    return failure();
  SmallVector<int64_t> table{computeProduct(shape.take_front(depth))};
  SmallVector<int64_t> changed{rows->count()};
  llvm::append_range(table, shape.drop_front(depth));
  llvm::append_range(changed, shape.drop_front(depth));
  if (tensorType(updates).getNumElements() != computeProduct(changed) ||
      tensorType(updates).getElementType() != tensorType(x).getElementType())
    return node.error("its updates do not fit operand and indices");
  return scatterRows(node, builder.reshape(x, table), *rows, builder.reshape(updates, changed),
                     node.string("reduction", "none"), shape);
}

static OnnxResults importScatterElements(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0), updates = node.input(2);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  FailureOr<int64_t> axis = axisOf(node, shape.size(), 0);
  if (failed(axis))
    return failure();
  FailureOr<IndexedRows> elements = elementsAlongAxis(node, shape, *axis);
  if (failed(elements))
    return failure();
  int64_t count = elements->count();
  if (tensorType(updates).getNumElements() != count ||
      tensorType(updates).getElementType() != tensorType(x).getElementType())
    return node.error("its updates do not fit operand and indices");
  return scatterRows(node, builder.reshape(x, computeProduct(shape)), *elements,
                     builder.reshape(updates, count), node.string("reduction", "none"), shape);
}

static OnnxRegistration scatterNd("ScatterND", 11, importScatterNd);
static OnnxRegistration scatterElements("ScatterElements", 11, importScatterElements);
static OnnxRegistration scatter("Scatter", 9, importScatterElements);

} // namespace trainc::nn
