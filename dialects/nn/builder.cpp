// SPDX-License-Identifier: Apache-2.0
//
// The builder's shorthands: each leaves out operations that would change nothing.
#include "dialects/nn/builder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace trainc::nn {

std::optional<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> shape(std::max(a.size(), b.size()), 1);
  for (auto part : {a, b})
    for (size_t i = 0; i < part.size(); ++i) {
      int64_t &size = shape[shape.size() - part.size() + i];
      if (size == 1)
        size = part[i];
      else if (part[i] != 1 && part[i] != size)
        return std::nullopt;
    }
  return shape;
}

static SmallVector<int64_t> fromFront(ArrayRef<int64_t> dimensions, int64_t rank) {
  auto result = llvm::map_to_vector(
      dimensions, [&](int64_t dimension) { return dimension < 0 ? dimension + rank : dimension; });
  llvm::sort(result);
  return result;
}

DenseElementsAttr splatAttribute(double value, RankedTensorType type) {
  Type element = type.getElementType();
  if (isa<FloatType>(element))
    return DenseElementsAttr::get(type, FloatAttr::get(element, value).getValue());
  return DenseElementsAttr::get(
      type, APInt(element.getIntOrFloatBitWidth(), static_cast<int64_t>(value), true));
}

Value Builder::named(StringRef role, Value value) {
  Location own = roleLocation(role, loc);
  for (Operation *op = value.getDefiningOp(); op && op->getLoc() == loc;) {
    op->setLoc(own);
    op = isa<ReshapeOp, TransposeOp, BroadcastOp>(op) ? op->getOperand(0).getDefiningOp() : nullptr;
  }
  return value;
}

Value Builder::constant(double value, Type type) {
  return create<ConstantOp>(splatAttribute(value, mlir::cast<RankedTensorType>(type)));
}

Value Builder::constant(ElementsAttr elements) { return create<ConstantOp>(elements); }

Value Builder::cast(Value x, Type elementType) {
  RankedTensorType type = tensorType(x);
  if (type.getElementType() == elementType)
    return x;
  return create<CastOp>(type.clone(elementType), x);
}

Value Builder::reshape(Value x, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(x);
  if (type.getShape() == shape)
    return x;
  return create<ReshapeOp>(type.clone(shape), x);
}

Value Builder::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return x;
  return create<TransposeOp>(x, permutation);
}

Value Builder::exchange(Value x, int64_t a, int64_t b) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank()));
  std::swap(order[a], order[b]);
  return transpose(x, order);
}

Value Builder::move(Value x, int64_t from, int64_t to) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank()));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}

Value Builder::broadcast(Value x, ArrayRef<int64_t> dimensions, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(x);
  if (type.getShape() == shape && llvm::equal(dimensions, llvm::seq<int64_t>(0, shape.size())))
    return x;
  return create<BroadcastOp>(type.clone(shape), x, dimensions);
}

Value Builder::broadcastTo(Value x, ArrayRef<int64_t> shape) {
  int64_t rank = shape.size();
  return broadcast(x, llvm::to_vector(llvm::seq(rank - tensorType(x).getRank(), rank)), shape);
}

LogicalResult Builder::unify(MutableArrayRef<Value> operands) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    auto joined = broadcastShapes(shape, tensorType(operand).getShape());
    if (!joined)
      return emitError(loc, "operands do not broadcast to one shape: ")
             << operands.front().getType() << " and " << operand.getType();
    shape = *joined;
  }
  for (Value &operand : operands)
    operand = broadcastTo(operand, shape);
  return success();
}

Value Builder::slice(Value x, int64_t dimension, int64_t start, int64_t size, int64_t stride) {
  SmallVector<int64_t> sizes(tensorType(x).getShape());
  if (start == 0 && size == sizes[dimension])
    return x;
  SmallVector<int64_t> starts(sizes.size(), 0), strides(sizes.size(), 1);
  starts[dimension] = start;
  sizes[dimension] = size;
  strides[dimension] = stride;
  return create<SliceOp>(x, starts, sizes, strides);
}

Value Builder::expand(Value x, ArrayRef<int64_t> reducedDimensions, ArrayRef<int64_t> shape) {
  int64_t rank = shape.size();
  SmallVector<int64_t> reduced = fromFront(reducedDimensions, rank), kept;
  for (int64_t dimension = 0; dimension < rank; ++dimension)
    if (!llvm::is_contained(reduced, dimension))
      kept.push_back(dimension);
  return broadcast(x, kept, shape);
}

Value Builder::reduceSum(Value x, ArrayRef<int64_t> dimensions) {
  if (dimensions.empty())
    return x;
  return create<ReduceSumOp>(x, fromFront(dimensions, tensorType(x).getRank()));
}

Value Builder::reduceMax(Value x, ArrayRef<int64_t> dimensions) {
  if (dimensions.empty())
    return x;
  return create<ReduceMaxOp>(x, fromFront(dimensions, tensorType(x).getRank()));
}

Value Builder::reduceMean(Value x, ArrayRef<int64_t> dimensions, StringRef role) {
  if (dimensions.empty())
    return x;
  int64_t count = 1;
  for (int64_t dimension : fromFront(dimensions, tensorType(x).getRank()))
    count *= tensorType(x).getDimSize(dimension);
  Value sum = named((role + "_sum").str(), reduceSum(x, dimensions));
  return named(role, div(sum, constant(static_cast<double>(count), sum.getType())));
}

Value Builder::matmul(Value a, Value b, bool transposeA, bool transposeB) {
  return create<MatmulOp>(a, b, transposeA, transposeB);
}

} // namespace trainc::nn
