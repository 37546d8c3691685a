// SPDX-License-Identifier: Apache-2.0
//
// Masks of attention (masks.h).
#include "passes/attention/masks.h"
#include "dialects/nn/raised_pattern.h"
#include "dialects/nn/tensor.h"
#include "dialects/nn/views.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include <algorithm>
#include <cstring>

using namespace mlir;

namespace trainc {

using nn::tensorType;

// ---- repetition

namespace {

constexpr int kDeepest = 12; // chains of operations that make a mask

/// Along which dimensions an element differs from its neighbours.
using Dimensions = llvm::SmallBitVector;

Dimensions allOf(ArrayRef<int64_t> shape) {
  Dimensions dimensions(shape.size());
  for (auto [d, size] : llvm::enumerate(shape))
    dimensions[d] = size > 1;
  return dimensions;
}

/// The slices along a dimension, as they lie in memory, are equal.
bool hasEqualSlices(const nn::Tensor &tensor, int64_t dimension) {
  ArrayRef<int64_t> shape = tensor.shape();
  int64_t size = shape[dimension], inner = tensor.width();
  for (int64_t later : shape.drop_front(dimension + 1))
    inner *= later;
  int64_t bytes = tensor.count() * tensor.width();
  for (int64_t row = 0; row < bytes; row += size * inner)
    for (int64_t slice = 1; slice < size; ++slice)
      if (std::memcmp(tensor.at(0) + row, tensor.at(0) + row + slice * inner, inner) != 0)
        return false;
  return true;
}

Dimensions variesOfConstant(nn::ConstantOp op) {
  constexpr int64_t kFewElements =
      1 << 14; // larger ones lost their repetition (patterns/constant.cpp)
  nn::Tensor tensor = nn::Tensor::of(op.getValue());
  Dimensions dimensions = allOf(tensor.shape());
  if (tensor.isSplat())
    return dimensions.reset();
  if (tensor.count() <= kFewElements)
    for (unsigned d : dimensions.set_bits())
      if (hasEqualSlices(tensor, d))
        dimensions.reset(d);
  return dimensions;
}

Dimensions variesOf(Value value, int depth = 0) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  Dimensions dimensions(shape.size());
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<nn::ConstantOp>(op))
    return variesOfConstant(constant);
  if (auto iota = dyn_cast_or_null<nn::IotaOp>(op))
    return shape[iota.getDimension()] > 1 ? dimensions.set(iota.getDimension()) : dimensions;
  if (depth < kDeepest) {
    if (auto broadcast = dyn_cast_or_null<nn::BroadcastOp>(op)) {
      for (unsigned d : variesOf(broadcast.getX(), depth + 1).set_bits())
        dimensions.set(broadcast.getDimensions()[d]);
      return dimensions;
    }
    if (isa_and_nonnull<nn::PointwiseOpInterface, nn::CastOp>(op)) {
      for (Value operand : op->getOperands())
        dimensions |= variesOf(operand, depth + 1);
      return dimensions;
    }
  }
  return allOf(shape);
}

/// Sizes along `kept`, 1 along other dimensions.
SmallVector<int64_t> keptSizes(ArrayRef<int64_t> shape, const Dimensions &kept) {
  SmallVector<int64_t> sizes(shape.size(), 1);
  for (unsigned d : kept.set_bits())
    sizes[d] = shape[d];
  return sizes;
}

Value rebuild(nn::Builder &builder, Value value, const Dimensions &kept) {
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape = keptSizes(type.getShape(), kept);
  if (shape == type.getShape())
    return value;
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    nn::Tensor tensor = nn::Tensor::of(constant.getValue());
    SmallVector<int64_t> strides(shape.size());
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= type.getDimSize(d))
      strides[d] = shape[d] == 1 ? 0 : stride;
    return builder.constant(tensor.moved(shape, 0, strides).attribute());
  }
  if (auto iota = dyn_cast<nn::IotaOp>(op))
    return builder.create<nn::IotaOp>(type.clone(shape), iota.getDimension());
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    RankedTensorType above = broadcast.getX().getType();
    Dimensions of(above.getRank());
    for (auto [d, to] : llvm::enumerate(broadcast.getDimensions()))
      of[d] = kept[to] && above.getDimSize(d) > 1;
    Value x = rebuild(builder, broadcast.getX(), of);
    return computeProduct(shape) == tensorType(x).getNumElements()
               ? builder.reshape(x, shape)
               : builder.broadcast(x, broadcast.getDimensions(), shape);
  }
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, rebuild(builder, operand, kept));
  Operation *copy = builder.op().clone(*op, operands);
  copy->getResult(0).setType(type.clone(shape));
  return copy->getResult(0);
}

} // namespace

Value withoutRepetition(nn::Builder &builder, Value value) {
  return rebuild(builder, value, variesOf(value));
}

int64_t elementsWithoutRepetition(Value value) {
  return computeProduct(keptSizes(tensorType(value).getShape(), variesOf(value)));
}

// ---- hidden keys

namespace {

/// The matrix of queries and keys that views repeat.
Value matrixOf(Value value) {
  while (isa_and_nonnull<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp())) {
    Value above = value.getDefiningOp()->getOperand(0);
    RankedTensorType type = tensorType(value), before = tensorType(above);
    if (before.getRank() < 2 || before.getShape().take_back(2) != type.getShape().take_back(2))
      break;
    if (auto broadcast = dyn_cast<nn::BroadcastOp>(value.getDefiningOp()))
      if (broadcast.getDimensions().back() != type.getRank() - 1 ||
          *(broadcast.getDimensions().end() - 2) != type.getRank() - 2)
        break;
    value = above;
  }
  return value;
}

/// The elements of a constant matrix, or of equal ones.
std::optional<nn::Tensor> matrixElements(Value value) {
  auto constant = value.getDefiningOp<nn::ConstantOp>();
  if (!constant)
    return std::nullopt;
  nn::Tensor tensor = nn::Tensor::of(constant.getValue());
  ArrayRef<int64_t> shape = tensor.shape();
  for (size_t d = 0; d + 2 < shape.size(); ++d)
    if (shape[d] > 1 && !hasEqualSlices(tensor, static_cast<int64_t>(d)))
      return std::nullopt;
  return tensor;
}

/// The reach of keys for which `isSeen(element)`, if they are such.
template <typename IsSeen> std::optional<int64_t> reachIn(ArrayRef<int64_t> shape, IsSeen isSeen) {
  int64_t keys = shape.back();
  std::optional<int64_t> reach;
  SmallVector<int64_t> seen(shape.end()[-2], 0);
  for (auto [query, count] : llvm::enumerate(seen)) {
    int64_t row = static_cast<int64_t>(query) * keys;
    while (count < keys && isSeen(row + count))
      ++count;
    for (int64_t key = count; key < keys; ++key)
      if (isSeen(row + key))
        return std::nullopt;
    if (!reach && count > 0 && count < keys)
      reach = count - 1 - static_cast<int64_t>(query);
  }
  for (auto [query, count] : llvm::enumerate(seen))
    if (!reach || count != std::clamp<int64_t>(static_cast<int64_t>(query) + *reach + 1, 0, keys))
      return std::nullopt;
  return reach;
}

/// row * query + column * key + number.
struct IndexSum {
  int64_t row = 0, column = 0, number = 0;
};

std::optional<IndexSum> indexSum(Value value) {
  int64_t rank = tensorType(value).getRank();
  DenseIntElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return IndexSum{0, 0, nn::Tensor::of(elements).integer(0)};
  if (auto iota = value.getDefiningOp<nn::IotaOp>()) {
    int64_t dimension = static_cast<int64_t>(iota.getDimension());
    if (dimension < rank - 2)
      return std::nullopt;
    return dimension == rank - 1 ? IndexSum{0, 1, 0} : IndexSum{1, 0, 0};
  }
  if (auto add = value.getDefiningOp<nn::AddOp>()) {
    auto a = indexSum(add.getA()), b = indexSum(add.getB());
    if (a && b)
      return IndexSum{a->row + b->row, a->column + b->column, a->number + b->number};
  }
  return std::nullopt;
}

/// The reach where `low` <= `high`, or < with `isStrict`, holds for seen keys alone.
std::optional<int64_t> reachOfOrder(Value low, Value high, bool isStrict) {
  auto a = indexSum(low), b = indexSum(high);
  if (!a || !b || b->row - a->row != 1 || a->column - b->column != 1)
    return std::nullopt;
  return b->number - a->number - (isStrict ? 1 : 0); // key <= query + this
}

/// The reach of a comparison. The opposite holds where the order with the other `isStrict` fails.
std::optional<int64_t> reachOfComparison(Operation *op, bool holdsForSeen) {
  bool isLess = isa<nn::LessOp, nn::LessOrEqualOp>(op),
       isStrict = isa<nn::LessOp, nn::GreaterOp>(op);
  if (!isLess && !isa<nn::GreaterOp, nn::GreaterOrEqualOp>(op))
    return std::nullopt;
  Value low = op->getOperand(isLess ? 0 : 1), high = op->getOperand(isLess ? 1 : 0);
  return holdsForSeen ? reachOfOrder(low, high, isStrict) : reachOfOrder(high, low, !isStrict);
}

} // namespace

std::optional<int64_t> reachOf(Value condition, bool holdsForSeen) {
  Value matrix = matrixOf(condition);
  if (auto opposite = matrix.getDefiningOp<nn::NotOp>())
    return reachOf(opposite.getX(), !holdsForSeen);
  if (auto elements = matrixElements(matrix))
    return reachIn(elements->shape(),
                   [&](int64_t i) { return (elements->integer(i) != 0) == holdsForSeen; });
  Operation *op = matrix.getDefiningOp();
  return op && tensorType(matrix).getRank() == 2 ? reachOfComparison(op, holdsForSeen)
                                                 : std::nullopt;
}

std::optional<HiddenKeys> hiddenBy(Value mask) {
  Value matrix = matrixOf(mask);
  if (auto select = matrix.getDefiningOp<nn::SelectOp>()) {
    auto a = nn::splatOfFloats(select.getA()), b = nn::splatOfFloats(select.getB());
    if (!a || !b || (*a != 0 && *b != 0))
      return std::nullopt;
    auto reach = reachOf(select.getCondition(), *a == 0);
    return reach ? std::optional(HiddenKeys{*reach, *a == 0 ? *b : *a}) : std::nullopt;
  }
  auto elements = matrixElements(matrix);
  if (!elements)
    return std::nullopt;
  double hidden = 0;
  for (int64_t i = 0, end = elements->count(); i < end && hidden == 0; ++i)
    hidden = elements->real(i);
  bool isUniform = hidden < 0;
  auto reach = reachIn(elements->shape(), [&](int64_t i) {
    double score = elements->real(i);
    isUniform &= score == 0 || score == hidden;
    return score == 0;
  });
  return reach && isUniform ? std::optional(HiddenKeys{*reach, hidden}) : std::nullopt;
}

} // namespace trainc
