// SPDX-License-Identifier: Apache-2.0
//
// Logarithms as exporters write PyTorch's logsigmoid, binary cross entropy and logaddexp, which are
// infinite where an exponential is rounded to 0 or overflows. Written with softplus they are
// finite, as PyTorch's own are:
//
//   log(sigmoid(x))       = -softplus(-x)
//   log(1 - sigmoid(x))   = -softplus(x)
//   log(exp(a) + exp(b))  = max(a, b) + softplus(-|a - b|), where a - b of equal ones is 0: two may
//   be
//                           infinite, as in sums over paths
#include "dialects/nn/raised_pattern.h"

using namespace mlir;

namespace trainc::nn {
namespace {

struct RaiseLogarithm : OpRewritePattern<LogOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LogOp op, PatternRewriter &rewriter) const override {
    Operation *argument = op.getX().getDefiningOp();
    if (auto sigmoid = dyn_cast_or_null<SigmoidOp>(argument)) {
      Value negative = rewriter.create<NegOp>(sigmoid.getLoc(), sigmoid.getX());
      return replace(op, sigmoid, negative, rewriter);
    }
    if (auto rest = dyn_cast_or_null<SubOp>(argument)) {
      auto sigmoid = rest.getB().getDefiningOp<SigmoidOp>();
      if (sigmoid && splatOfFloats(rest.getA()) == 1)
        return replace(op, sigmoid, sigmoid.getX(), rewriter);
    }
    if (auto sum = dyn_cast_or_null<AddOp>(argument)) {
      auto a = sum.getA().getDefiningOp<ExpOp>(), b = sum.getB().getDefiningOp<ExpOp>();
      if (a && b)
        return replaceSum(op, a.getX(), b.getX(), rewriter);
    }
    return failure();
  }

private:
  static LogicalResult replace(LogOp op, Operation *sigmoid, Value x, PatternRewriter &rewriter) {
    Value softplus = rewriter.create<SoftplusOp>(wholeLocation(op, sigmoid), x);
    rewriter.replaceOpWithNewOp<NegOp>(op, softplus);
    return success();
  }

  static LogicalResult replaceSum(LogOp op, Value a, Value b, PatternRewriter &rewriter) {
    Builder builder(rewriter, op.getLoc());
    Value zero = builder.constant(0, a.getType());
    Value distance = builder.select(builder.create<EqualOp>(a, b), zero, builder.sub(a, b));
    Value softplus = builder.create<SoftplusOp>(builder.neg(builder.create<AbsOp>(distance)));
    rewriter.replaceOp(op, builder.add(builder.create<MaximumOp>(a, b), softplus));
    return success();
  }
};

} // namespace

static RaiseRegistration logarithm([](RewritePatternSet &patterns) {
  patterns.add<RaiseLogarithm>(patterns.getContext());
});

} // namespace trainc::nn
