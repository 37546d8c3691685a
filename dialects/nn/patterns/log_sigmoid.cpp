// SPDX-License-Identifier: Apache-2.0
//
// log(sigmoid(x)), as exporters write PyTorch's logsigmoid: -softplus(-x), which is finite where
// the sigmoid is rounded to 0.
#include "dialects/nn/raised_pattern.h"

using namespace mlir;

namespace trainc::nn {
namespace {

struct RaiseLogSigmoid : OpRewritePattern<LogOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LogOp op, PatternRewriter &rewriter) const override {
    auto sigmoid = op.getX().getDefiningOp<SigmoidOp>();
    if (!sigmoid)
      return failure();
    Value negative = rewriter.create<NegOp>(sigmoid.getLoc(), sigmoid.getX());
    Value softplus = rewriter.create<SoftplusOp>(wholeLocation(op, sigmoid), negative);
    rewriter.replaceOpWithNewOp<NegOp>(op, softplus);
    return success();
  }
};

} // namespace

static RaiseRegistration logSigmoid([](RewritePatternSet &patterns) {
  patterns.add<RaiseLogSigmoid>(patterns.getContext());
});

} // namespace trainc::nn
