// SPDX-License-Identifier: Apache-2.0
//
// ONNX Det. Small determinants are sums of products of minors. Others are products of the pivots of
// an elimination that takes the largest element left for each (Wilkinson 1961): a pivot of zero
// then means that all that is left is zero, so that value and gradient hold for singular matrices,
// too, of any rank.
#include "compiler/onnx/import/compositions/extreme_index.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include <map>

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal largeMatrices({"Det"}, "matrices of more than 64 rows");

namespace {

constexpr int64_t kFewRows = 4;   // n 2^(n-1) products
constexpr int64_t kMostRows = 64; // each makes some twenty operations

/// The determinants of matrices [batch, n, n], in the shape [batch].
class Determinant {
public:
  Determinant(Builder &builder, Value x)
      : builder(builder), x(x), batch(tensorType(x).getDimSize(0)),
        rows(tensorType(x).getDimSize(1)) {}

  Value build() { return rows <= kFewRows ? ofMinors() : ofPivots(); }

private:
  Value element(int64_t row, int64_t column) {
    return builder.reshape(builder.slice(builder.slice(x, 1, row, 1), 2, column, 1), batch);
  }

  /// Minors of the last rows by their columns, a bit each; of one row more in every round.
  Value ofMinors() {
    std::map<unsigned, Value> minors{{0, Value()}};
    for (int64_t row = rows; row-- > 0;) {
      std::map<unsigned, Value> larger;
      for (auto [columns, minor] : minors)
        for (int64_t column = 0; column < rows; ++column)
          if (!(columns >> column & 1))
            addTerm(larger[columns | 1U << column], row, column, columns, minor);
      minors = std::move(larger);
    }
    return minors.begin()->second;
  }

  void addTerm(Value &sum, int64_t row, int64_t column, unsigned others, Value minor) {
    Value term = element(row, column);
    term = minor ? builder.mul(term, minor) : term;
    bool isNegative = llvm::popcount(others & ((1U << column) - 1)) % 2;
    term = isNegative ? builder.neg(term) : term;
    sum = sum ? builder.add(sum, term) : term;
  }

  Value ofPivots() {
    Value left = x, product;
    for (int64_t size = rows; size > 1; --size) {
      SmallVector<int64_t> lines{batch, size}, square{batch, size, size};
      Value flat = builder.reshape(left, {batch, size * size});
      Value place = extremeIndex(builder, builder.create<AbsOp>(flat), 1, Extreme::largest);
      Value by = builder.constant(static_cast<double>(size), place.getType());
      Value row = builder.div(place, by), column = builder.create<RemainderOp>(place, by);
      Value isRow = isAt(row, lines), isColumn = isAt(column, lines);
      Value ofRow = chosen(left, builder.expand(isRow, 2, square), 1);
      Value ofColumn = chosen(left, builder.expand(isColumn, 1, square), 2);
      Value pivot = chosen(ofRow, isColumn, 1);
      Value one = builder.constant(1, pivot.getType());
      Value isZero = builder.create<EqualOp>(pivot, builder.constant(0, pivot.getType()));
      Value factors =
          builder.div(ofColumn, builder.expand(builder.select(isZero, one, pivot), 1, lines));
      left = builder.sub(
          left, builder.mul(builder.expand(factors, 2, square), builder.expand(ofRow, 1, square)));
      left = without(without(left, isRow, 1), isColumn, 2);
      Value factor = builder.mul(builder.mul(sign(row), sign(column)), pivot);
      product = product ? builder.mul(product, factor) : factor;
    }
    return builder.mul(product, builder.reshape(left, batch));
  }

  Value isAt(Value index, ArrayRef<int64_t> lines) {
    auto type = RankedTensorType::get(lines, builder.op().getI64Type());
    return builder.create<EqualOp>(builder.create<IotaOp>(type, 1),
                                   builder.expand(index, 1, lines));
  }

  Value chosen(Value values, Value isChosen, int64_t dimension) {
    Value zero = builder.constant(0, values.getType());
    return builder.reduceSum(builder.select(isChosen, values, zero), dimension);
  }

  /// The first line takes the place of the one at `isGone`, which is in it as [batch, size].
  Value without(Value values, Value isGone, int64_t dimension) {
    ArrayRef<int64_t> shape = tensorType(values).getShape();
    Value first = builder.slice(values, dimension, 0, 1);
    SmallVector<int64_t> line{shape[0], shape[3 - dimension]};
    first = builder.expand(builder.reshape(first, line), dimension, shape);
    Value moved = builder.select(builder.expand(isGone, 3 - dimension, shape), first, values);
    return builder.slice(moved, dimension, 1, shape[dimension] - 1);
  }

  /// What an exchange of the first line with the one at `index` multiplies by.
  Value sign(Value index) {
    Value isFirst = builder.create<EqualOp>(index, builder.constant(0, index.getType()));
    auto type = RankedTensorType::get(batch, tensorType(x).getElementType());
    return builder.select(isFirst, builder.constant(1, type), builder.constant(-1, type));
  }

  Builder &builder;
  Value x;
  int64_t batch, rows;
};

} // namespace

static OnnxResults importDet(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  RankedTensorType type = tensorType(x);
  int64_t rank = type.getRank();
  if (rank < 2 || type.getDimSize(rank - 1) != type.getDimSize(rank - 2))
    return node.error("its operand has no square matrices in its last two dimensions");
  ArrayRef<int64_t> batch = type.getShape().drop_back(2);
  int64_t rows = type.getDimSize(rank - 1);
  if (rows > kMostRows)
    return node.error(largeMatrices.told("determinants of " + llvm::Twine(rows) +
                                         " rows are not supported, only of at most " +
                                         llvm::Twine(kMostRows)));
  if (rows == 0)
    return SmallVector<Value>{builder.constant(1, type.clone(batch))};
  int64_t count = type.getNumElements() / (rows * rows);
  Value matrices = builder.reshape(x, {count, rows, rows});
  return SmallVector<Value>{builder.reshape(Determinant(builder, matrices).build(), batch)};
}

static OnnxRegistration det = OnnxRegistration("Det", 11, importDet).takesFloats();

} // namespace trainc::nn
