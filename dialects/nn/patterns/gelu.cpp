// SPDX-License-Identifier: Apache-2.0
//
// nn.gelu and nn.gelu_tanh written out, as exporters below opset 20 and modules of
// one's own do: 0.5 * x * (1 + erf(x / sqrt(2))), and with
// tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)).
#include "dialects/nn/raised_pattern.h"

using namespace mlir;

namespace trainc::nn {
namespace {

struct RaiseGelu : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    Product product(op.getResult());
    for (size_t i = 0; i < product.factors.size(); ++i) {
      Value inner = addedTo(product.factors[i], 1);
      if (!inner)
        continue;
      Product rest = product;
      rest.factors.erase(rest.factors.begin() + i);
      if (auto erf = inner.getDefiningOp<ErfOp>()) {
        if (Value x = erfArgument(erf.getX(), rest)) {
          auto gelu = rewriter.create<GeluOp>(wholeLocation(op, erf), x);
          rewriter.replaceOp(op, gelu);
          return success();
        }
      } else if (auto tanh = inner.getDefiningOp<TanhOp>()) {
        if (Value x = tanhArgument(tanh.getX(), rest)) {
          auto gelu = rewriter.create<GeluTanhOp>(wholeLocation(op, tanh), x);
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
    return x && rest.remove(x) && rest.factors.empty() && isNear(rest.number, 0.5) ? x : nullptr;
  }

  // x where `value` is x * number.
  static Value scaled(Value value, double number) {
    if (auto mul = value.getDefiningOp<MulOp>()) {
      for (auto [constant, other] :
           {std::pair(mul.getA(), mul.getB()), std::pair(mul.getB(), mul.getA())})
        if (auto splat = splatOfFloats(constant); splat && isNear(*splat, number))
          return other;
    } else if (auto div = value.getDefiningOp<DivOp>()) {
      if (auto splat = splatOfFloats(div.getB()); splat && isNear(*splat, 1 / number))
        return div.getA();
    }
    return nullptr;
  }

  static Value tanhArgument(Value argument, const Product &rest) {
    constexpr double rootOf2OverPi = 0.79788456080286536;
    Product inner(argument);
    if (!isNear(inner.number, rootOf2OverPi))
      return nullptr;
    for (size_t i = 0; i < inner.factors.size(); ++i) {
      auto add = inner.factors[i].getDefiningOp<AddOp>();
      if (!add)
        continue;
      Product others = inner;
      others.factors.erase(others.factors.begin() + i);
      for (auto [first, second] :
           {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())}) {
        Value x = cubic(first, second, others);
        Product outer = rest;
        if (x && outer.remove(x) && outer.factors.empty() && isNear(outer.number, 0.5))
          return x;
      }
    }
    return nullptr;
  }

  // x of x + 0.044715 x^3 (nothing besides), or of x * (1 + 0.044715 x^2).
  static Value cubic(Value first, Value second, const Product &others) {
    constexpr double coefficient = 0.044715;
    Product power(second);
    if (!isNear(power.number, coefficient) || power.factors.empty())
      return nullptr;
    if (others.factors.empty())
      return power.isPower(first, 3) && isNear(power.number, coefficient) ? first : nullptr;
    auto one = splatOfFloats(first);
    Value x = others.factors.front();
    bool matches = one && *one == 1 && others.factors.size() == 1 && power.isPower(x, 2);
    return matches ? x : nullptr;
  }
};

} // namespace

static RaiseRegistration gelu([](RewritePatternSet &patterns) {
  patterns.add<RaiseGelu>(patterns.getContext());
});

} // namespace trainc::nn
