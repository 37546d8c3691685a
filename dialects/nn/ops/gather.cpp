// SPDX-License-Identifier: Apache-2.0
//
// nn.gather; ONNX Gather over any axis. Constant indices in arithmetic
// progression are slices, whose gradient needs no scatter.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <cstring>

using namespace mlir;

namespace trainc::nn {

// Puts dimension `axis` first (or, with `undo`, dimensions [0, count) at `axis`).
static SmallVector<int64_t> moveToFront(int64_t rank, int64_t axis) {
  SmallVector<int64_t> permutation{axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      permutation.push_back(i);
  return permutation;
}

static Value sliceAlong(Builder &builder, Value table, int64_t axis, ArrayRef<int64_t> indices) {
  int64_t stride = indices.size() > 1 ? indices[1] - indices[0] : 1;
  return builder.slice(table, axis, indices.front(), indices.size(), stride);
}

static bool isProgression(ArrayRef<int64_t> indices) {
  if (indices.empty() || (indices.size() > 1 && indices[0] == indices[1]))
    return false;
  for (size_t i = 2; i < indices.size(); ++i)
    if (indices[i] - indices[i - 1] != indices[1] - indices[0])
      return false;
  return true;
}

// Gathered rows. A row of padding has no gradient.
static Value withoutPadding(Builder &builder, Value rows, Value indices, int64_t padding) {
  Value row = builder.constant(static_cast<double>(padding), indices.getType());
  Value isPadding = builder.named("is_padding", builder.create<EqualOp>(indices, row));
  const int64_t axes = tensorType(indices).getRank();
  isPadding = builder.broadcast(isPadding, llvm::to_vector(llvm::seq<int64_t>(0, axes)),
                                tensorType(rows).getShape());
  return builder.select(isPadding, builder.create<DetachOp>(rows), rows);
}

static OnnxResults importGather(OnnxNode &node) {
  Builder &builder = node.builder();
  Value table = node.input(0), indices = node.input(1);
  auto type = tensorType(table), indexType = tensorType(indices);
  FailureOr<int64_t> found = axisOf(node, type.getRank(), 0);
  if (failed(found))
    return failure();
  int64_t rank = type.getRank(), axis = *found;
  int64_t rows = type.getDimSize(axis);
  const std::optional<int64_t> padding = axis == 0 ? node.paddingRow() : std::nullopt;
  SmallVector<int64_t> shape(type.getShape().take_front(axis));
  llvm::append_range(shape, indexType.getShape());
  llvm::append_range(shape, type.getShape().drop_front(axis + 1));
  if (auto known = node.integers(1)) {
    for (int64_t &index : *known) {
      if (index < -rows || index >= rows)
        return node.error("index " + llvm::Twine(index) + " is out of range for size " +
                          llvm::Twine(rows));
      index = index < 0 ? index + rows : index;
    }
    if (isProgression(*known) && !(padding && llvm::is_contained(*known, *padding)))
      return SmallVector<Value>{builder.reshape(sliceAlong(builder, table, axis, *known), shape)};
    auto i64 = IntegerType::get(builder.op().getContext(), 64);
    indices = builder.constant(DenseElementsAttr::get(indexType.clone(i64), ArrayRef(*known)));
  }
  // The indexed dimension first; then the index dimensions go back after the leading ones.
  Value rowsFirst = builder.transpose(table, moveToFront(rank, axis));
  Value gathered = builder.create<GatherOp>(rowsFirst, indices);
  if (padding)
    gathered = withoutPadding(builder, gathered, indices, *padding);
  int64_t count = indexType.getRank();
  SmallVector<int64_t> back = llvm::to_vector(llvm::seq(count, count + axis));
  llvm::append_range(back, llvm::seq<int64_t>(0, count));
  llvm::append_range(back, llvm::seq(count + axis, count + rank - 1));
  return SmallVector<Value>{builder.transpose(gathered, back)};
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto table = tensorType(adaptor.getTable());
  if (table.getRank() < 1) // gather-c1
    return emitOptionalError(location, "the table has at least one dimension, found ", table);
  SmallVector<int64_t> shape(tensorType(adaptor.getIndices()).getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  types.push_back(table.clone(shape));
  return success();
}

LogicalResult GatherOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                      const llvm::SmallBitVector &,
                                      SmallVectorImpl<Value> &operandGradients) {
  Value zero = builder.constant(0, getTable().getType());
  operandGradients.assign(
      {builder.create<ScatterAddOp>(zero, getIndices(), resultGradients[0]), Value()});
  return success();
}

double GatherOp::flops() { return 0; }

FailureOr<Tensor> GatherOp::interpret(ArrayRef<Tensor> operands) {
  const Tensor &table = operands[0];
  Tensor result(getResult().getType());
  int64_t rows = table.shape().front(), each = result.width();
  int64_t row = computeProduct(table.shape().drop_front());
  char *to = result.data();
  for (int64_t index : operands[1].integers()) {
    if (index < 0 || index >= rows)
      return emitError("index ") << index << " is outside [0, " << rows << ")";
    for (int64_t i = 0; i < row; ++i, to += each)
      std::memcpy(to, table.at(index * row + i), each);
  }
  return result;
}

// From the table it reads the rows that are asked for.
int64_t GatherOp::bytesRead(unsigned operand) {
  return bytesOf((operand == 0 ? getResult() : getIndices()).getType());
}

static OnnxWeight weightsOfGather(unsigned input, ArrayRef<int64_t> shape) {
  return input == 0 && shape.size() == 2 ? OnnxWeight::table : OnnxWeight::none;
}

static OnnxRegistration gather("Gather", 1, importGather, weightsOfGather);

} // namespace trainc::nn
