// SPDX-License-Identifier: Apache-2.0
//
// raise-patterns: recognises layer norm, GELU and softmax of masked rows written
// out in primitives.
//
// Exporters below the opsets that have them as operators (LayerNormalization 17,
// Gelu 20), and modules that define them by hand, leave chains such as ReduceMean,
// Sub, Pow, ReduceMean, Add, Sqrt, Div. Raised to nn.layer_norm, nn.gelu and
// nn.gelu_tanh they get the gradient of the whole instead of that of the parts.
// Canonicalisation first removes the differences that mean nothing; then chains of
// products are compared as sets of factors, so the order of multiplication does
// not matter. Known weakness: variance as E[x^2] - E[x]^2 is left as it is, for
// it is another rounding.
#include "dialects/nn/builder.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/passes.h"
#include "passes/simplify.h"

using namespace mlir;
using namespace trainc;

namespace {

std::optional<double> splatOf(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)) || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>().convertToDouble();
}

bool near(double value, double expected) {
  constexpr double tolerance = 1e-6; // exporters write constants with 7 digits
  return std::abs(value - expected) <= tolerance * std::abs(expected);
}

/// The name of the module that a raised chain was, where the names of its nodes say so:
/// `h.0.mlp.act` of `h.0.mlp.act.mul_4` and `h.0.mlp.act.tanh`; else that of its last node.
Location wholeLocation(Operation *last, Operation *part) {
  auto lastName = dyn_cast<NameLoc>(last->getLoc()), partName = dyn_cast<NameLoc>(part->getLoc());
  if (!lastName || !partName)
    return last->getLoc();
  StringRef module = lastName.getName().getValue().rsplit('.').first;
  if (module == lastName.getName().getValue() ||
      module != partName.getName().getValue().rsplit('.').first)
    return last->getLoc();
  return NameLoc::get(StringAttr::get(last->getContext(), module));
}

/// A product as one number and the factors that are not numbers.
struct Product {
  double number = 1;
  SmallVector<Value> factors;

  explicit Product(Value value) { multiply(value); }

  void multiply(Value value) {
    if (auto splat = splatOf(value))
      number *= *splat;
    else if (auto mul = value.getDefiningOp<nn::MulOp>()) {
      multiply(mul.getA());
      multiply(mul.getB());
    } else if (auto div = value.getDefiningOp<nn::DivOp>(); div && splatOf(div.getB())) {
      multiply(div.getA());
      number /= *splatOf(div.getB());
    } else if (auto neg = value.getDefiningOp<nn::NegOp>()) {
      number = -number;
      multiply(neg.getX());
    } else
      factors.push_back(value);
  }

  /// Removes x itself, which may be a product, from the factors; false where it is not in it.
  bool remove(Value x) {
    SmallVector<Value> rest = factors;
    Product whole(x);
    for (Value factor : whole.factors) {
      auto found = llvm::find(rest, factor);
      if (found == rest.end())
        return false;
      rest.erase(found);
    }
    factors = rest;
    number /= whole.number;
    return true;
  }

  bool isPower(Value x, unsigned power) {
    for (unsigned i = 0; i < power; ++i)
      if (!remove(x))
        return false;
    return factors.empty();
  }
};

/// The other operand of an addition of the constant `number`; null otherwise.
Value addedTo(Value sum, double number) {
  auto add = sum.getDefiningOp<nn::AddOp>();
  if (!add)
    return nullptr;
  for (auto [constant, other] :
       {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())})
    if (auto splat = splatOf(constant); splat && near(*splat, number))
      return other;
  return nullptr;
}

// 0.5 * x * (1 + erf(x / sqrt(2))), and with tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)).
struct RaiseGelu : OpRewritePattern<nn::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::MulOp op, PatternRewriter &rewriter) const override {
    Product product(op.getResult());
    for (size_t i = 0; i < product.factors.size(); ++i) {
      Value inner = addedTo(product.factors[i], 1);
      if (!inner)
        continue;
      Product rest = product;
      rest.factors.erase(rest.factors.begin() + i);
      if (auto erf = inner.getDefiningOp<nn::ErfOp>()) {
        if (Value x = erfArgument(erf.getX(), rest)) {
          auto gelu = rewriter.create<nn::GeluOp>(wholeLocation(op, erf), x);
          rewriter.replaceOp(op, gelu);
          return success();
        }
      } else if (auto tanh = inner.getDefiningOp<nn::TanhOp>()) {
        if (Value x = tanhArgument(tanh.getX(), rest)) {
          auto gelu = rewriter.create<nn::GeluTanhOp>(wholeLocation(op, tanh), x);
          rewriter.replaceOp(op, gelu);
          return success();
        }
      }
    }
    return failure();
  }

private:
  // x where `rest` is 0.5 * x and `argument` is x / sqrt(2).
  static Value erfArgument(Value argument, Product rest) {
    Value x = scaled(argument, 0.70710678118654752);
    return x && rest.remove(x) && rest.factors.empty() && near(rest.number, 0.5) ? x : nullptr;
  }

  // x where `value` is x * number.
  static Value scaled(Value value, double number) {
    if (auto mul = value.getDefiningOp<nn::MulOp>()) {
      for (auto [constant, other] :
           {std::pair(mul.getA(), mul.getB()), std::pair(mul.getB(), mul.getA())})
        if (auto splat = splatOf(constant); splat && near(*splat, number))
          return other;
    } else if (auto div = value.getDefiningOp<nn::DivOp>()) {
      if (auto splat = splatOf(div.getB()); splat && near(*splat, 1 / number))
        return div.getA();
    }
    return nullptr;
  }

  static Value tanhArgument(Value argument, const Product &rest) {
    constexpr double rootOf2OverPi = 0.79788456080286536;
    Product inner(argument);
    if (!near(inner.number, rootOf2OverPi))
      return nullptr;
    for (size_t i = 0; i < inner.factors.size(); ++i) {
      auto add = inner.factors[i].getDefiningOp<nn::AddOp>();
      if (!add)
        continue;
      Product others = inner;
      others.factors.erase(others.factors.begin() + i);
      for (auto [first, second] :
           {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())}) {
        Value x = cubic(first, second, others);
        Product outer = rest;
        if (x && outer.remove(x) && outer.factors.empty() && near(outer.number, 0.5))
          return x;
      }
    }
    return nullptr;
  }

  // x of x + 0.044715 x^3 (nothing besides), or of x * (1 + 0.044715 x^2).
  static Value cubic(Value first, Value second, const Product &others) {
    constexpr double coefficient = 0.044715;
    Product power(second);
    if (!near(power.number, coefficient) || power.factors.empty())
      return nullptr;
    if (others.factors.empty())
      return power.isPower(first, 3) && near(power.number, coefficient) ? first : nullptr;
    auto one = splatOf(first);
    Value x = others.factors.front();
    bool matches = one && *one == 1 && others.factors.size() == 1 && power.isPower(x, 2);
    return matches ? x : nullptr;
  }
};

// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) over the last dimension.
template <typename Root> struct RaiseLayerNorm : OpRewritePattern<Root> {
  using OpRewritePattern<Root>::OpRewritePattern;

  LogicalResult matchAndRewrite(Root op, PatternRewriter &rewriter) const override {
    for (auto [centered, factor] : operandPairs(op)) {
      auto sub = centered.template getDefiningOp<nn::SubOp>();
      Value row = sub ? rowOf(factor) : Value();
      Value deviation = row ? deviationOf(op, row) : Value();
      if (!deviation || rowMeanOf(rowOf(sub.getB())) != sub.getA())
        continue;
      double epsilon;
      Value variance = splitEpsilon(deviation, epsilon);
      auto square = variance ? squareOf(rowMeanOf(variance)) : Value();
      if (!square || square != centered)
        continue;
      auto norm = rewriter.create<nn::LayerNormOp>(wholeLocation(op, sub), sub.getA(),
                                                   llvm::APFloat(epsilon));
      rewriter.replaceOp(op, norm);
      return success();
    }
    return failure();
  }

private:
  static SmallVector<std::pair<Value, Value>> operandPairs(nn::DivOp op) {
    return {{op.getA(), op.getB()}};
  }
  static SmallVector<std::pair<Value, Value>> operandPairs(nn::MulOp op) {
    return {{op.getA(), op.getB()}, {op.getB(), op.getA()}};
  }

  static Value throughReshapes(Value value) {
    while (auto reshape = value ? value.getDefiningOp<nn::ReshapeOp>() : nullptr)
      value = reshape.getX();
    return value;
  }

  // The value per row that is repeated along the last dimension; null where it is not.
  static Value rowOf(Value value) {
    auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
    if (!broadcast)
      return nullptr;
    ArrayRef<int64_t> from = nn::tensorType(broadcast.getX()).getShape(),
                      to = nn::tensorType(value).getShape(), dimensions = broadcast.getDimensions();
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
    auto div = value ? value.getDefiningOp<nn::DivOp>() : nullptr;
    auto sum =
        div ? throughReshapes(div.getA()).template getDefiningOp<nn::ReduceSumOp>() : nullptr;
    if (!sum)
      return nullptr;
    auto type = nn::tensorType(sum.getX());
    auto count = splatOf(div.getB());
    bool isMean = sum.getDimensions() == ArrayRef<int64_t>{type.getRank() - 1} && count &&
                  *count == type.getShape().back();
    return isMean ? sum.getX() : nullptr;
  }

  static Value squareOf(Value value) {
    auto mul = value ? value.getDefiningOp<nn::MulOp>() : nullptr;
    return mul && mul.getA() == mul.getB() ? mul.getA() : nullptr;
  }

  // variance + epsilon where the centered value is divided by its square root, or multiplied by
  // the reciprocal of that.
  static Value deviationOf(Operation *op, Value row) {
    if (isa<nn::MulOp>(op)) {
      if (auto rsqrt = row.getDefiningOp<nn::RsqrtOp>())
        return rsqrt.getX();
      if (auto reciprocal = row.getDefiningOp<nn::ReciprocalOp>())
        row = throughReshapes(reciprocal.getX());
      else if (auto div = row.getDefiningOp<nn::DivOp>();
               div && splatOf(div.getA()).value_or(0) == 1)
        row = throughReshapes(div.getB());
      else
        return nullptr;
    }
    auto root = row.getDefiningOp<nn::SqrtOp>();
    return root ? throughReshapes(root.getX()) : nullptr;
  }

  static Value splitEpsilon(Value value, double &epsilon) {
    auto add = throughReshapes(value).template getDefiningOp<nn::AddOp>();
    if (!add)
      return nullptr;
    for (auto [constant, other] :
         {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())})
      if (auto splat = splatOf(constant); splat && *splat >= 0) {
        epsilon = *splat;
        return throughReshapes(other);
      }
    return nullptr;
  }
};

// where(isnan(y), 0, y) of y = softmax(x): how exporters write attention whose rows
// may be masked throughout. Left in two operations, the gradient of such a row would
// be NaN behind the selection that hides its value.
struct RaiseMaskedSoftmax : OpRewritePattern<nn::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::SelectOp op, PatternRewriter &rewriter) const override {
    auto isNan = op->getOperand(0).getDefiningOp<nn::IsNaNOp>();
    Value y = op->getOperand(2);
    auto softmax = y.getDefiningOp<nn::SoftmaxOp>();
    auto zero = splatOf(op->getOperand(1));
    if (!isNan || !softmax || isNan->getOperand(0) != y || !zero || *zero != 0)
      return failure();
    auto whole = rewriter.create<nn::SoftmaxOp>(wholeLocation(op, softmax), softmax.getX(),
                                                /*masked_to_zero=*/true);
    rewriter.replaceOp(op, whole);
    return success();
  }
};

struct RaisePatterns : PassWrapper<RaisePatterns, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RaisePatterns)
  StringRef getArgument() const override { return "raise-patterns"; }
  StringRef getDescription() const override {
    return "recognise layer norm, GELU and masked softmax written out in primitives";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<trainc::nn::NNDialect>();
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns
        .add<RaiseGelu, RaiseMaskedSoftmax, RaiseLayerNorm<nn::DivOp>, RaiseLayerNorm<nn::MulOp>>(
            &getContext());
    if (failed(simplify(getOperation())) ||
        failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))) ||
        failed(simplify(getOperation())))
      signalPassFailure();
  }
};

PassRegistration<RaisePatterns> registration;

} // namespace

std::unique_ptr<Pass> trainc::createRaisePatternsPass() {
  return std::make_unique<RaisePatterns>();
}
