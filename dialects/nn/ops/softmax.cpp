// SPDX-License-Identifier: Apache-2.0
//
// nn.softmax; ONNX Softmax, which below opset 13 runs over all dimensions from
// `axis` on together.
#include "dialects/nn/onnx/onnx_softmax.h"
#include "dialects/nn/raised_pattern.h"
#include <limits>

using namespace mlir;

namespace trainc::nn {

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  if (type.getRank() < 1) // softmax-c1
    return emitOptionalError(location, "rank is at least 1, found ", type);
  types.push_back(type);
  return success();
}

LogicalResult SoftmaxOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                       const llvm::SmallBitVector &,
                                       SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0], y = getResult();
  Value dot = builder.named("gradient_dot_probability", builder.reduceSum(builder.mul(dy, y), -1));
  Value difference = builder.sub(dy, builder.expand(dot, -1, tensorType(y).getShape()));
  operandGradients.assign({builder.mul(difference, y)});
  return success();
}

double SoftmaxOp::flops() { return 14.0 * getX().getType().getNumElements(); }

SmallVector<Value> SoftmaxOp::decompose(Builder &builder) {
  ArrayRef<int64_t> shape = getX().getType().getShape();
  Value largest = builder.named("largest", builder.reduceMax(getX(), -1)), masked;
  if (getMaskedToZero()) { // exp(-inf - 0) / 1 instead of exp(-inf + inf) / 0
    Value lowest = builder.constant(-std::numeric_limits<double>::infinity(), largest.getType());
    masked = builder.named("is_masked", builder.create<EqualOp>(largest, lowest));
    largest = builder.named(
        "finite_largest", builder.select(masked, builder.constant(0, largest.getType()), largest));
  }
  Value shifted = builder.sub(getX(), builder.expand(largest, -1, shape));
  Value exponentials = builder.named("exponential", builder.exp(builder.named("shifted", shifted)));
  Value sum = builder.named("sum_of_exponentials", builder.reduceSum(exponentials, -1));
  if (masked)
    sum = builder.named("divisor", builder.select(masked, builder.constant(1, sum.getType()), sum));
  return {builder.div(exponentials, builder.expand(sum, -1, shape))};
}

namespace {

// where(isnan(y), 0, y) of y = softmax(x): how exporters write attention whose rows
// may be masked throughout. Left in two operations, the gradient of such a row would
// be NaN after the selection that hides its value.
struct RaiseMaskedSoftmax : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    auto isNan = op->getOperand(0).getDefiningOp<IsNaNOp>();
    Value y = op->getOperand(2);
    auto softmax = y.getDefiningOp<SoftmaxOp>();
    auto zero = splatOfFloats(op->getOperand(1));
    if (!isNan || !softmax || isNan->getOperand(0) != y || !zero || *zero != 0)
      return failure();
    rewriter.replaceOp(op, rewriter.create<SoftmaxOp>(softmax.getLoc(), softmax.getX(),
                                                      /*masked_to_zero=*/true));
    return success();
  }
};

} // namespace

static RaiseRegistration raiseSoftmax([](RewritePatternSet &patterns) {
  patterns.add<RaiseMaskedSoftmax>(patterns.getContext());
});

static OnnxRegistration softmaxTogether("Softmax", 1, importSoftmaxTogether<SoftmaxOp>);
static OnnxRegistration softmaxAlongAxis("Softmax", 13, importSoftmaxAlongAxis<SoftmaxOp>);

} // namespace trainc::nn
