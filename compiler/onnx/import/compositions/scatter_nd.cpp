// SPDX-License-Identifier: Apache-2.0
//
// ONNX ScatterND, ScatterElements and Scatter, its older name: updates of rows or of elements.
#include "compiler/onnx/import/compositions/indexed_rows.h"
#include "compiler/onnx/import/compositions/scatter_reduction.h"
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

/// Along which row of the axis each of them lies, in the shape of their indices.
static Value rowsOnAxis(OnnxNode &node, const IndexedRows &elements, ArrayRef<int64_t> shape,
                        int64_t axis) {
  Builder &builder = node.builder();
  Value number = elements.tensor(node);
  auto by = [&](int64_t count) {
    return builder.constant(static_cast<double>(count), number.getType());
  };
  Value line = builder.div(number, by(computeProduct(shape.drop_front(axis + 1))));
  Value row = builder.create<RemainderOp>(line, by(shape[axis]));
  return builder.reshape(row, elements.shape);
}

/// Rows and updates for every line along the axis. A line that indices leave out gets none.
static OnnxResults reduceElements(OnnxNode &node, const IndexedRows &elements, int64_t axis,
                                  StringRef reduction) {
  Builder &builder = node.builder();
  Value x = node.input(0), rows = rowsOnAxis(node, elements, tensorType(x).getShape(), axis);
  Value updates = builder.reshape(node.input(2), elements.shape);
  SmallVector<int64_t> none(elements.shape.size(), 0), behind(none);
  for (size_t d = 0; d < none.size(); ++d)
    if (static_cast<int64_t>(d) != axis)
      behind[d] = tensorType(x).getDimSize(d) - elements.shape[d];
  Value fromOne = builder.add(rows, builder.constant(1, rows.getType()));
  fromOne = builder.create<PadOp>(fromOne, none, behind, none);
  rows = builder.sub(fromOne, builder.constant(1, fromOne.getType()));
  updates = builder.create<PadOp>(updates, none, behind, none);
  return reduceUpdates(node, x, rows, updates, axis, reduction);
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
  std::string reduction = node.string("reduction", "none");
  bool isSum = reduction == "add" && isa<FloatType>(tensorType(x).getElementType());
  if (reduction != "none" && !isSum)
    return reduceElements(node, *elements, *axis, reduction);
  return scatterRows(node, builder.reshape(x, computeProduct(shape)), *elements,
                     builder.reshape(updates, count), reduction, shape);
}

static const StringRef kReductions[] = {"none", "add", "mul", "min", "max"};

static OnnxRegistration scatterNd =
    OnnxRegistration("ScatterND", 11, importScatterNd).takes("reduction", kReductions);
static OnnxRegistration scatterElements =
    OnnxRegistration("ScatterElements", 11, importScatterElements).takes("reduction", kReductions);
static OnnxRegistration scatter("Scatter", 9, importScatterElements);

} // namespace trainc::nn
