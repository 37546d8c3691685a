// SPDX-License-Identifier: Apache-2.0
//
// Canonicalisation rules that concern many operations of nn: arithmetic on
// splats, neutral elements, transposes into matrix products, reshapes out of
// broadcasts, gradients of tied tables, and tables of their own indices. They preserve values bit
// for bit, except -0 + 0, the order of a sum that a scatter joins, and x^3 as two products (within
// the error that pow may have). Nothing here makes a large
// constant.
#include "dialects/nn/builder.h"
#include "dialects/nn/interpreter.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace trainc::nn {
namespace {

std::optional<double> splatOf(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return std::nullopt;
  Type element = splat.getElementType();
  if (isa<FloatType>(element))
    return splat.getSplatValue<APFloat>().convertToDouble();
  auto number = static_cast<double>(Tensor::of(splat).integer(0));
  constexpr double exact = 0x1p53; // beyond, a double does not hold every integer
  return std::abs(number) < exact ? std::optional(number) : std::nullopt;
}

bool isSplat(Value value, double number) {
  auto splat = splatOf(value);
  return splat && *splat == number;
}

// What is rounded correctly only: the compiler's library is not the trainer's. NaN stays for the
// trainer, which is where it must show.
class SplatFolder {
public:
  LogicalResult fold(Operation *op, PatternRewriter &rewriter) const {
    SmallVector<Tensor> operands;
    auto isConstant = [](Value operand) { return matchPattern(operand, m_Constant()); };
    if (!llvm::all_of(op->getOperands(), isConstant))
      return failure();
    for (Value operand : op->getOperands()) {
      SplatElementsAttr splat;
      if (!matchPattern(operand, m_Constant(&splat)))
        return failure();
      operands.push_back(Tensor::of(splat));
      if (operands.back().count() == 0 || std::isnan(operands.back().real(0)))
        return failure();
    }
    if (!interpreter.isExact(op))
      return failure();
    FailureOr<Tensor> value = interpreter.evaluate(op, operands);
    if (failed(value))
      return failure();
    rewriter.replaceOpWithNewOp<ConstantOp>(op, value->attribute());
    return success();
  }

private:
  mutable Interpreter interpreter{kLargestFolded}; // patterns are const; it keeps scalar programs
};

struct FoldSplats : OpInterfaceRewritePattern<PointwiseOpInterface>, SplatFolder {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(PointwiseOpInterface op, PatternRewriter &rewriter) const override {
    return fold(op, rewriter);
  }
};

struct FoldSplatCast : OpRewritePattern<CastOp>, SplatFolder {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    return fold(op, rewriter);
  }
};

/// Replaces `Op` by its operand `keep` where operand `neutral` is a splat of `number`.
template <typename Op> struct DropNeutral : OpRewritePattern<Op> {
  DropNeutral(MLIRContext *context, unsigned keep, double number)
      : OpRewritePattern<Op>(context), keep(keep), number(number) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!isSplat(op->getOperand(1 - keep), number))
      return failure();
    rewriter.replaceOp(op, op->getOperand(keep));
    return success();
  }
  unsigned keep;
  double number;
};

struct SelectConstant : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    if (op.getA() == op.getB()) {
      rewriter.replaceOp(op, op.getA());
      return success();
    }
    auto condition = splatOf(op.getCondition());
    if (!condition)
      return failure();
    rewriter.replaceOp(op, *condition != 0 ? op.getA() : op.getB());
    return success();
  }
};

template <typename Op>
struct DropPair : OpRewritePattern<Op> { // an operation that is its own inverse
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().template getDefiningOp<Op>();
    if (!inner)
      return failure();
    rewriter.replaceOp(op, inner.getX());
    return success();
  }
};

// Small exponents by products, as exporters' pow(x, 2) and pow(x, 3) mean them.
struct PowerToProduct : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op, PatternRewriter &rewriter) const override {
    auto exponent = splatOf(op.getE());
    if (!exponent || !isa<FloatType>(tensorType(op.getX()).getElementType()))
      return failure();
    Value x = op.getX();
    Location location = op.getLoc();
    if (*exponent == 1) {
      rewriter.replaceOp(op, x);
    } else if (*exponent == 2) {
      rewriter.replaceOpWithNewOp<MulOp>(op, x, x);
    } else if (*exponent == 3) {
      rewriter.replaceOpWithNewOp<MulOp>(op, rewriter.create<MulOp>(location, x, x), x);
    } else if (*exponent == 0.5) {
      // Unlike the root, the power of -0 is 0 and that of -infinity is infinity.
      Builder builder(rewriter, location);
      const double infinity = std::numeric_limits<double>::infinity();
      auto replaced = [&](double from, double to) {
        Value condition = builder.create<EqualOp>(x, builder.constant(from, x.getType()));
        x = builder.select(condition, builder.constant(to, x.getType()), x);
      };
      replaced(0, 0);
      replaced(-infinity, infinity);
      rewriter.replaceOpWithNewOp<SqrtOp>(op, x);
    } else if (*exponent == -1) {
      rewriter.replaceOpWithNewOp<ReciprocalOp>(op, x);
    } else {
      return failure();
    }
    return success();
  }
};

bool swapsMatrix(TransposeOp transpose) {
  if (!transpose)
    return false;
  auto permutation = transpose.getPermutation();
  int64_t rank = permutation.size();
  if (rank < 2 || permutation[rank - 2] != rank - 1 || permutation[rank - 1] != rank - 2)
    return false;
  return llvm::equal(permutation.drop_back(2), llvm::seq<int64_t>(0, rank - 2));
}

struct TransposeIntoMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    auto a = op.getA().getDefiningOp<TransposeOp>(), b = op.getB().getDefiningOp<TransposeOp>();
    bool swapA = swapsMatrix(a), swapB = swapsMatrix(b);
    if (!swapA && !swapB)
      return failure();
    rewriter.replaceOpWithNewOp<MatmulOp>(op, swapA ? a.getX() : op.getA(),
                                          swapB ? b.getX() : op.getB(), op.getTransposeA() != swapA,
                                          op.getTransposeB() != swapB);
    return success();
  }
};

// A reshape that only inserts dimensions of size 1 says nothing to a broadcast.
struct ReshapeIntoBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto reshape = op.getX().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return failure();
    ArrayRef<int64_t> from = reshape.getX().getType().getShape(),
                      to = reshape.getResult().getType().getShape();
    SmallVector<int64_t> dimensions;
    for (size_t i = 0; i < to.size(); ++i) {
      if (dimensions.size() < from.size() && to[i] == from[dimensions.size()])
        dimensions.push_back(op.getDimensions()[i]);
      else if (to[i] != 1)
        return failure();
    }
    if (dimensions.size() != from.size())
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), reshape.getX(), dimensions);
    return success();
  }
};

template <typename Op> struct ReductionOfOnes : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto type = tensorType(op.getX());
    for (int64_t dimension : op.getDimensions())
      if (type.getDimSize(dimension) != 1)
        return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
    return success();
  }
};

// scatter(table, i, u) + v = scatter(table + v, i, u): the two gradients of a
// tied embedding become one table without another pass over it.
struct AddIntoScatter : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    for (auto [side, other] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
      auto scatter = side.getDefiningOp<ScatterAddOp>();
      if (!scatter || !scatter->hasOneUse())
        continue;
      Value table = other;
      if (!isSplat(scatter.getTable(), 0))
        table = rewriter.create<AddOp>(op.getLoc(), scatter.getTable(), other);
      auto joined = rewriter.create<ScatterAddOp>(scatter.getLoc(), table, scatter.getIndices(),
                                                  scatter.getUpdates());
      rewriter.replaceOp(op, joined.getResult());
      return success();
    }
    return failure();
  }
};

// A table of the indices themselves, which importers have for its check of their range.
struct GatherOfIndices : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    auto iota = op.getTable().getDefiningOp<IotaOp>();
    if (!iota || op.getTable().getType().getRank() != 1)
      return failure();
    Builder builder(rewriter, op.getLoc());
    rewriter.replaceOp(op, builder.cast(op.getIndices(), op.getType().getElementType()));
    return success();
  }
};

} // namespace

void NNDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  MLIRContext *context = getContext();
  for (unsigned keep : {0, 1}) {
    patterns.add<DropNeutral<AddOp>>(context, keep, 0);
    patterns.add<DropNeutral<MulOp>>(context, keep, 1);
  }
  patterns.add<DropNeutral<SubOp>>(context, 0, 0);
  patterns.add<DropNeutral<DivOp>>(context, 0, 1);
  patterns.add<FoldSplats, FoldSplatCast, SelectConstant, DropPair<NegOp>, DropPair<NotOp>,
               PowerToProduct, TransposeIntoMatmul, ReshapeIntoBroadcast,
               ReductionOfOnes<ReduceSumOp>, ReductionOfOnes<ReduceMaxOp>,
               ReductionOfOnes<ReduceMinOp>, AddIntoScatter, GatherOfIndices>(context);
}

} // namespace trainc::nn
