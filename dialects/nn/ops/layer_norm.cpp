// SPDX-License-Identifier: Apache-2.0
//
// nn.layer_norm; ONNX LayerNormalization, whose scale and bias become pointwise
// operations.
#include "dialects/nn/normalization.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/raised_pattern.h"

using namespace mlir;

namespace trainc::nn {

static Normalization normalizationOf(Builder &builder, Value x, double epsilon) {
  return {builder, x, {tensorType(x).getRank() - 1}, epsilon};
}

static OnnxResults importLayerNormalization(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto type = tensorType(x);
  int64_t rank = type.getRank();
  FailureOr<int64_t> axis = axisOf(node, rank, -1);
  if (failed(axis))
    return failure();
  double epsilon = node.real("epsilon", 1e-5);
  if (epsilon < 0)
    return node.error("epsilon is negative");
  int64_t normalized = 1;
  for (int64_t size : type.getShape().drop_front(*axis))
    normalized *= size;
  SmallVector<int64_t> flat(type.getShape().take_front(*axis)), rows = flat;
  flat.push_back(normalized);
  rows.resize(rank, 1);
  Value rowsFlat = builder.reshape(x, flat);
  Value y = builder.create<LayerNormOp>(rowsFlat, llvm::APFloat(epsilon));
  if (node.hasInput(1))
    y = builder.named("normalized", y);
  SmallVector<Value> results{builder.reshape(y, type.getShape())};
  for (unsigned i : {1, 2}) {
    if (!node.hasInput(i))
      continue;
    Value operand = node.input(i);
    auto joined = broadcastShapes(tensorType(operand).getShape(), type.getShape());
    if (!joined || ArrayRef(*joined) != type.getShape() ||
        tensorType(operand).getElementType() != type.getElementType())
      return node.error(llvm::Twine(i == 1 ? "scale" : "bias") + " does not fit the input");
    operand = builder.broadcastTo(operand, type.getShape());
    results[0] = i == 1 ? builder.mul(results[0], operand) : builder.add(results[0], operand);
    if (i == 1 && node.hasInput(2))
      results[0] = builder.named("scaled", results[0]);
  }
  if (node.numOutputs() > 1) { // mean and reciprocal deviation, with sizes of 1
    Normalization statistics = normalizationOf(builder, rowsFlat, epsilon);
    results.push_back(builder.reshape(statistics.mean, rows));
    results.push_back(builder.reshape(statistics.rstd, rows));
    results.resize(std::min<size_t>(node.numOutputs(), results.size()));
  }
  return results;
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  if (type.getRank() < 1) // layer_norm-c1
    return emitOptionalError(location, "rank is at least 1, found ", type);
  if (adaptor.getEpsilon().isNegative()) // layer_norm-c1
    return emitOptionalError(location, "epsilon is not negative");
  types.push_back(type);
  return success();
}

LogicalResult LayerNormOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &,
                                         SmallVectorImpl<Value> &operandGradients) {
  Normalization normalization = normalizationOf(builder, getX(), getEpsilon().convertToDouble());
  operandGradients.assign({normalization.gradient(builder, resultGradients[0])});
  return success();
}

double LayerNormOp::flops() { return 6.0 * getX().getType().getNumElements(); }

SmallVector<Value> LayerNormOp::decompose(Builder &builder) {
  return {normalizationOf(builder, getX(), getEpsilon().convertToDouble()).result(builder)};
}

namespace {

// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) over the last dimension, as
// exporters below opset 17 write it: raised, it has the gradient of the whole. Known
// weakness: a variance of E[x^2] - E[x]^2 is left as it is, for it is another rounding.
template <typename Root> struct RaiseLayerNorm : OpRewritePattern<Root> {
  using OpRewritePattern<Root>::OpRewritePattern;

  LogicalResult matchAndRewrite(Root op, PatternRewriter &rewriter) const override {
    for (auto [centered, factor] : operandPairs(op)) {
      auto sub = centered.template getDefiningOp<SubOp>();
      Value row = sub ? rowOf(factor) : Value();
      Value deviation = row ? deviationOf(op, row) : Value();
      if (!deviation || rowMeanOf(rowOf(sub.getB())) != sub.getA())
        continue;
      double epsilon;
      Value variance = splitEpsilon(deviation, epsilon);
      auto square = variance ? squareOf(rowMeanOf(variance)) : Value();
      if (!square || square != centered)
        continue;
      auto norm =
          rewriter.create<LayerNormOp>(wholeLocation(op, sub), sub.getA(), llvm::APFloat(epsilon));
      rewriter.replaceOp(op, norm);
      return success();
    }
    return failure();
  }

private:
  static SmallVector<std::pair<Value, Value>> operandPairs(DivOp op) {
    return {{op.getA(), op.getB()}};
  }
  static SmallVector<std::pair<Value, Value>> operandPairs(MulOp op) {
    return {{op.getA(), op.getB()}, {op.getB(), op.getA()}};
  }

  static Value throughReshapes(Value value) {
    while (auto reshape = value ? value.getDefiningOp<ReshapeOp>() : nullptr)
      value = reshape.getX();
    return value;
  }

  // The value per row that is repeated along the last dimension; null where it is not.
  static Value rowOf(Value value) {
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    if (!broadcast)
      return nullptr;
    ArrayRef<int64_t> from = tensorType(broadcast.getX()).getShape(),
                      to = tensorType(value).getShape(), dimensions = broadcast.getDimensions();
    if (from.size() == to.size() && from.back() == 1) {
      from = from.drop_back();
      dimensions = dimensions.drop_back();
    }
    bool rows =
        from == to.drop_back() && llvm::equal(dimensions, llvm::seq<int64_t>(0, dimensions.size()));
    return rows ? throughReshapes(broadcast.getX()) : nullptr;
  }

  // What `value` is the mean of over the last dimension.
  static Value rowMeanOf(Value value) {
    value = throughReshapes(value);
    auto div = value ? value.getDefiningOp<DivOp>() : nullptr;
    auto sum = div ? throughReshapes(div.getA()).template getDefiningOp<ReduceSumOp>() : nullptr;
    if (!sum)
      return nullptr;
    auto type = tensorType(sum.getX());
    auto count = splatOfFloats(div.getB());
    bool isMean = sum.getDimensions() == ArrayRef<int64_t>{type.getRank() - 1} && count &&
                  *count == type.getShape().back();
    return isMean ? sum.getX() : nullptr;
  }

  static Value squareOf(Value value) {
    auto mul = value ? value.getDefiningOp<MulOp>() : nullptr;
    return mul && mul.getA() == mul.getB() ? mul.getA() : nullptr;
  }

  // variance + epsilon where the centered value is divided by its square root, or multiplied by
  // the reciprocal of that.
  static Value deviationOf(Operation *op, Value row) {
    if (isa<MulOp>(op)) {
      if (auto rsqrt = row.getDefiningOp<RsqrtOp>())
        return rsqrt.getX();
      if (auto reciprocal = row.getDefiningOp<ReciprocalOp>())
        row = throughReshapes(reciprocal.getX());
      else if (auto div = row.getDefiningOp<DivOp>();
               div && splatOfFloats(div.getA()).value_or(0) == 1)
        row = throughReshapes(div.getB());
      else
        return nullptr;
    }
    auto root = row.getDefiningOp<SqrtOp>();
    return root ? throughReshapes(root.getX()) : nullptr;
  }

  static Value splitEpsilon(Value value, double &epsilon) {
    auto add = throughReshapes(value).template getDefiningOp<AddOp>();
    if (!add)
      return nullptr;
    for (auto [constant, other] :
         {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())})
      if (auto splat = splatOfFloats(constant); splat && *splat >= 0) {
        epsilon = *splat;
        return throughReshapes(other);
      }
    return nullptr;
  }
};

} // namespace

static RaiseRegistration raiseLayerNorm([](RewritePatternSet &patterns) {
  patterns.add<RaiseLayerNorm<DivOp>, RaiseLayerNorm<MulOp>>(patterns.getContext());
});

static OnnxWeight weightsOfLayerNorm(unsigned input, ArrayRef<int64_t>) {
  return input == 1 ? OnnxWeight::scale : input == 2 ? OnnxWeight::bias : OnnxWeight::none;
}

static OnnxRegistration layerNormalization("LayerNormalization", 17, importLayerNormalization,
                                           weightsOfLayerNorm);

} // namespace trainc::nn
