// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/import/compositions/indexed_rows.h"
#include "compiler/onnx/import/compositions/scatter_reduction.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

// The row that an index tuple names in a tensor of `shape` whose first dimensions, as many as the
// tuple has entries, are joined; nullopt where an entry is out of range.
static std::optional<int64_t> rowOf(ArrayRef<int64_t> tuple, ArrayRef<int64_t> shape) {
  int64_t row = 0;
  for (auto [index, size] : llvm::zip(tuple, shape)) {
    if (index < -size || index >= size)
      return std::nullopt;
    row = row * size + (index < 0 ? index + size : index);
  }
  return row;
}

static Value literalRows(OnnxNode &node, ArrayRef<int64_t> rows) {
  return node.integerLiteral(rows, static_cast<int64_t>(rows.size()));
}

int64_t IndexedRows::count() const { return computeProduct(shape); }

Value IndexedRows::tensor(OnnxNode &node) const {
  return known ? literalRows(node, *known) : computed;
}

// Indices of a dimension of `size` as i64 in [0, size). A table of the indices themselves is
// gathered from, so that each is checked as those of Gather are
// (compiler/onnx/graph/index_bounds.cpp); simplification drops it.
static Value checkedIndices(Builder &builder, Value indices, int64_t size) {
  auto i64 = IntegerType::get(builder.op().getContext(), 64);
  Value places = builder.create<IotaOp>(RankedTensorType::get({size}, i64), 0);
  return builder.create<GatherOp>(places, indices);
}

// Row-major numbers of index tuples, given by one tensor (i64) for each dimension of `sizes`.
static IndexedRows joinedRows(Builder &builder, ArrayRef<Value> indices, ArrayRef<int64_t> sizes) {
  Value row = indices.front();
  for (auto [index, size] : llvm::zip(indices.drop_front(), sizes.drop_front()))
    row = builder.add(builder.scale(row, static_cast<double>(size)), index);
  SmallVector<int64_t> shape(tensorType(row).getShape());
  return {shape, std::nullopt, builder.reshape(row, tensorType(row).getNumElements())};
}

static Value placesAlong(Builder &builder, ArrayRef<int64_t> shape, int64_t dimension) {
  auto i64 = IntegerType::get(builder.op().getContext(), 64);
  return builder.create<IotaOp>(RankedTensorType::get(shape, i64), dimension);
}

FailureOr<IndexedRows> elementsAlongAxis(OnnxNode &node, ArrayRef<int64_t> shape, int64_t axis) {
  Tensor known = node.constant(1);
  SmallVector<int64_t> sizes(known ? known.shape() : tensorType(node.input(1)).getShape());
  int64_t rank = shape.size();
  if (static_cast<int64_t>(sizes.size()) != rank)
    return node.error("its indices have rank " + llvm::Twine(sizes.size()) + ", its operand " +
                      llvm::Twine(rank));
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis && sizes[d] > shape[d])
      return node.error("its indices have size " + llvm::Twine(sizes[d]) + " along dimension " +
                        llvm::Twine(d) + ", its operand " + llvm::Twine(shape[d]));
  if (!known) {
    Builder &builder = node.builder();
    SmallVector<Value> indices;
    for (int64_t d = 0; d < rank; ++d)
      indices.push_back(d == axis ? checkedIndices(builder, node.input(1), shape[d])
                                  : placesAlong(builder, sizes, d));
    return joinedRows(builder, indices, shape);
  }
  SmallVector<int64_t> strides = computeStrides(sizes);
  std::vector<int64_t> rows = known.integers();
  for (auto [i, element] : llvm::enumerate(rows)) {
    SmallVector<int64_t> tuple;
    for (int64_t d = 0; d < rank; ++d)
      tuple.push_back(d == axis ? element : static_cast<int64_t>(i) / strides[d] % sizes[d]);
    auto row = rowOf(tuple, shape);
    if (!row)
      return node.error("index " + llvm::Twine(element) + " is out of range for size " +
                        llvm::Twine(shape[axis]));
    element = *row;
  }
  return IndexedRows{sizes, std::move(rows), Value()};
}

FailureOr<IndexedRows> elementsByNumber(OnnxNode &node, int64_t count) {
  Tensor known = node.constant(1);
  if (!known) {
    Value indices = node.input(1);
    SmallVector<int64_t> shape(tensorType(indices).getShape());
    Builder &builder = node.builder();
    Value numbers = builder.reshape(indices, tensorType(indices).getNumElements());
    return IndexedRows{shape, std::nullopt, checkedIndices(builder, numbers, count)};
  }
  std::vector<int64_t> rows = known.integers();
  for (int64_t &element : rows) {
    auto row = rowOf(element, count);
    if (!row)
      return node.error("index " + llvm::Twine(element) + " is out of range for " +
                        llvm::Twine(count) + " elements");
    element = *row;
  }
  return IndexedRows{SmallVector<int64_t>(known.shape()), std::move(rows), Value()};
}

FailureOr<IndexedRows> rowsOfTuples(OnnxNode &node, ArrayRef<int64_t> shape, int64_t batch,
                                    int64_t &depth) {
  Tensor known = node.constant(1);
  SmallVector<int64_t> sizes(known ? known.shape() : tensorType(node.input(1)).getShape());
  int64_t rank = shape.size(), own = sizes.empty() ? 0 : sizes.back();
  depth = batch + own;
  if (batch < 0 || static_cast<int64_t>(sizes.size()) <= batch || own < 1 || depth > rank ||
      ArrayRef(sizes).take_front(batch) != shape.take_front(batch))
    return node.error("its indices do not fit an operand of rank " + llvm::Twine(rank));
  ArrayRef<int64_t> tuples = ArrayRef(sizes).drop_back();
  if (!known) {
    Builder &builder = node.builder();
    SmallVector<Value> indices;
    for (int64_t d = 0; d < batch; ++d)
      indices.push_back(placesAlong(builder, tuples, d));
    for (int64_t d = 0; d < own; ++d) {
      Value entry = builder.slice(node.input(1), sizes.size() - 1, d, 1);
      indices.push_back(checkedIndices(builder, builder.reshape(entry, tuples), shape[batch + d]));
    }
    return joinedRows(builder, indices, shape.take_front(depth));
  }
  std::vector<int64_t> values = known.integers(), rows;
  int64_t count = computeProduct(tuples), each = computeProduct(tuples.drop_front(batch));
  SmallVector<int64_t> batchStrides = computeStrides(shape.take_front(batch));
  for (int64_t t = 0; t < count; ++t) {
    SmallVector<int64_t> tuple;
    for (int64_t d = 0; d < batch; ++d)
      tuple.push_back(t / each / batchStrides[d] % shape[d]);
    llvm::append_range(tuple, ArrayRef(values).slice(t * own, own));
    auto row = rowOf(tuple, shape);
    if (!row)
      return node.error("an index is out of range");
    rows.push_back(*row);
  }
  return IndexedRows{SmallVector<int64_t>(tuples), std::move(rows), Value()};
}

// For each update (bool) whether it is the last one of its row. The last one's number is found bit
// by bit, from the highest: where an update that is left has the bit, those without it fall out.
static Value isLastOfRow(Builder &builder, Value rows, int64_t tableRows) {
  int64_t count = tensorType(rows).getDimSize(0);
  Type f32 = builder.op().getF32Type();
  Value number = placesAlong(builder, count, 0), left;
  Value none = builder.constant(0, RankedTensorType::get({tableRows}, f32));
  for (unsigned bit = llvm::Log2_64_Ceil(std::max<int64_t>(count, 1)); bit-- > 0;) {
    Value half = builder.constant(std::ldexp(1, bit), number.getType());
    Value rest = builder.create<RemainderOp>(
        number, builder.constant(std::ldexp(1, bit + 1), number.getType()));
    Value has = builder.create<GreaterOrEqualOp>(rest, half);
    Value mine = left ? builder.create<AndOp>(left, has) : has;
    Value counts = builder.create<ScatterAddOp>(none, rows, builder.cast(mine, f32));
    Value counted = builder.create<GatherOp>(counts, rows);
    Value others = builder.create<EqualOp>(counted, builder.constant(0, counted.getType()));
    Value stays = builder.create<OrOp>(has, others);
    left = left ? builder.create<AndOp>(left, stays) : stays;
  }
  return left;
}

// For each row of a table of `tableRows`, followed by the updates, the row that takes its place.
static Value replacements(OnnxNode &node, const IndexedRows &rows, int64_t tableRows) {
  Builder &builder = node.builder();
  if (rows.known) {
    auto chosen = llvm::to_vector(llvm::seq<int64_t>(0, tableRows));
    for (auto [update, row] : llvm::enumerate(*rows.known))
      chosen[row] = tableRows + static_cast<int64_t>(update);
    return literalRows(node, chosen);
  }
  int64_t count = rows.count();
  Type f64 = builder.op().getF64Type(), i64 = builder.op().getI64Type();
  Value number = builder.cast(placesAlong(builder, count, 0), f64);
  number = builder.add(number, builder.constant(1, number.getType()));
  if (Value last = isLastOfRow(builder, rows.computed, tableRows))
    number = builder.select(last, number, builder.constant(0, number.getType()));
  Value none = builder.constant(0, RankedTensorType::get({tableRows}, f64));
  Value update = builder.cast(builder.create<ScatterAddOp>(none, rows.computed, number), i64);
  Type type = update.getType(); // within known bounds, so that it needs no check
  update = builder.create<MinimumOp>(builder.create<MaximumOp>(update, builder.constant(0, type)),
                                     builder.constant(static_cast<double>(count), type));
  Value isNone = builder.create<EqualOp>(update, builder.constant(0, type));
  Value last = builder.constant(static_cast<double>(tableRows - 1), type);
  return builder.select(isNone, placesAlong(builder, tableRows, 0), builder.add(update, last));
}

// PyTorch's TorchScript exporter writes index_put(accumulate=True) so.
static void warnOfRepeated(OnnxNode &node, const IndexedRows &rows, RankedTensorType table) {
  if (!rows.known || !isa<FloatType>(table.getElementType()))
    return;
  std::vector<int64_t> sorted = *rows.known;
  llvm::sort(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    node.warning("repeated-indices",
                 "its indices repeat: of several updates of one place the last one counts",
                 "where the module adds them (index_put with accumulate=True): trainc.export, or "
                 "scatter_add in the module; else nothing");
}

OnnxResults scatterRows(OnnxNode &node, Value table, const IndexedRows &rows, Value updates,
                        StringRef reduction, ArrayRef<int64_t> resultShape) {
  Builder &builder = node.builder();
  RankedTensorType type = tensorType(table);
  if (reduction == "add" && isa<FloatType>(type.getElementType())) {
    Value sum = builder.create<ScatterAddOp>(table, rows.tensor(node), updates);
    return SmallVector<Value>{builder.reshape(sum, resultShape)};
  }
  if (reduction != "none") {
    Value lines = builder.broadcast(rows.tensor(node), 0, tensorType(updates).getShape());
    OnnxResults results = reduceUpdates(node, table, lines, updates, 0, reduction);
    if (succeeded(results))
      results->front() = builder.reshape(results->front(), resultShape);
    return results;
  }
  warnOfRepeated(node, rows, type);
  Value parts[] = {table, updates};
  Value both = builder.create<ConcatOp>(ValueRange(parts), 0);
  Value chosen = replacements(node, rows, type.getDimSize(0));
  return SmallVector<Value>{builder.reshape(builder.create<GatherOp>(both, chosen), resultShape)};
}

} // namespace trainc::nn
