// SPDX-License-Identifier: Apache-2.0
//
// Adagrad, Adam and Momentum of ONNX's domain ai.onnx.preview.training: one step of an optimizer as
// part of a model, which other nodes may read. What trains a model here is --optimizer.
//
// Inputs are the rate R, the number T of steps before, then n tensors of each kind: X, their
// gradients, and states. The results are the new tensors and states. Formulas are those of the ONNX
// specification.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

constexpr StringRef kDomain = "ai.onnx.preview.training";

namespace {

class UpdateRule {
public:
  UpdateRule(OnnxNode &node, unsigned states) : node(node), b(node.builder()), states(states) {}

  LogicalResult check() {
    unsigned kinds = 2 + states;
    if (node.numInputs() < 2 + kinds || (node.numInputs() - 2) % kinds != 0)
      return node.error("has " + llvm::Twine(node.numInputs()) + " inputs, expected R, T and " +
                        llvm::Twine(kinds) + " for each tensor");
    tensors = (node.numInputs() - 2) / kinds;
    if (node.numOutputs() != (1 + states) * tensors)
      return node.error("has " + llvm::Twine(node.numOutputs()) + " outputs, expected " +
                        llvm::Twine((1 + states) * tensors));
    for (unsigned i = 0; i < node.numInputs(); ++i)
      if (!node.hasInput(i))
        return node.error("input " + llvm::Twine(i) + " is missing");
    for (unsigned i = 0; i < 2; ++i)
      if (tensorType(node.input(i)).getNumElements() != 1)
        return node.error(llvm::Twine(i == 0 ? "R" : "T") + " is not one number");
    for (unsigned i = 0; i < tensors; ++i) {
      auto type = tensorType(of(0, i));
      if (!isa<FloatType>(type.getElementType()))
        return node.error("a tensor is not of a float type");
      for (unsigned kind = 1; kind < kinds; ++kind)
        if (tensorType(of(kind, i)) != type)
          return node.error("a gradient or state does not have the type and shape of its tensor");
    }
    return success();
  }

  // An input by its kind, in their order: X, gradients, states.
  Value of(unsigned kind, unsigned tensor) { return node.input(2 + kind * tensors + tensor); }

  Value rate() { return scalar(0); }
  Value step() { return scalar(1); }

  Value times(Value number, Value tensor) {
    auto type = tensorType(tensor);
    Value fitting = b.cast(number, type.getElementType());
    return b.mul(b.broadcast(fitting, {}, type.getShape()), tensor);
  }
  Value plus(Value tensor, double number) {
    return b.add(tensor, b.constant(number, tensor.getType()));
  }
  Value rootOf(Value x) { return b.create<SqrtOp>(x); }

  // With the gradient of half the squares of X.
  Value gradientOf(unsigned tensor) {
    double decay = node.real("norm_coefficient", 0);
    Value gradient = of(1, tensor);
    return decay == 0 ? gradient : b.add(b.scale(of(0, tensor), decay), gradient);
  }

  /// `update` gives X and the states of one tensor.
  OnnxResults each(llvm::function_ref<SmallVector<Value>(unsigned)> update) {
    SmallVector<Value> results((1 + states) * tensors);
    for (unsigned i = 0; i < tensors; ++i)
      for (auto [kind, value] : llvm::enumerate(update(i)))
        results[kind * tensors + i] = value;
    return results;
  }

  /// What is of the first step, and of later ones.
  Value byStep(Value first, Value later) {
    Value isLater = b.create<GreaterOp>(step(), b.constant(0, step().getType()));
    return b.select(isLater, later, first);
  }

  OnnxNode &node;
  Builder &b;

private:
  Value scalar(unsigned input) {
    return b.cast(b.reshape(node.input(input), {}), tensorType(node.input(0)).getElementType());
  }

  unsigned states, tensors = 0;
};

} // namespace

static OnnxResults importAdagrad(OnnxNode &node) {
  UpdateRule rule(node, 1);
  if (failed(rule.check()))
    return failure();
  Builder &b = node.builder();
  Value decayed = rule.plus(b.scale(rule.step(), node.real("decay_factor", 0)), 1);
  Value rate = b.div(rule.rate(), decayed);
  double epsilon = node.real("epsilon", 1e-6);
  return rule.each([&](unsigned i) {
    Value gradient = rule.gradientOf(i);
    Value squares = b.add(rule.of(2, i), b.mul(gradient, gradient));
    Value step = b.div(rule.times(rate, gradient), rule.plus(rule.rootOf(squares), epsilon));
    return SmallVector<Value>{b.sub(rule.of(0, i), step), squares};
  });
}

static OnnxResults importMomentum(OnnxNode &node) {
  UpdateRule rule(node, 1);
  if (failed(rule.check()))
    return failure();
  Builder &b = node.builder();
  double alpha = node.real("alpha", 0), beta = node.real("beta", 0);
  bool looksAhead = node.string("mode", "standard") == "nesterov";
  Value rate = rule.rate();
  Value share = rule.byStep(b.constant(1, rate.getType()), b.constant(beta, rate.getType()));
  return rule.each([&](unsigned i) {
    Value gradient = rule.gradientOf(i);
    Value momentum = b.add(b.scale(rule.of(2, i), alpha), rule.times(share, gradient));
    Value direction = looksAhead ? b.add(gradient, b.scale(momentum, alpha)) : momentum;
    return SmallVector<Value>{b.sub(rule.of(0, i), rule.times(rate, direction)), momentum};
  });
}

static OnnxResults importAdam(OnnxNode &node) {
  UpdateRule rule(node, 2);
  if (failed(rule.check()))
    return failure();
  Builder &b = node.builder();
  double alpha = node.real("alpha", 0.9f), beta = node.real("beta", 0.999f);
  double epsilon = node.real("epsilon", 1e-6), after = node.real("norm_coefficient_post", 0);
  Value given = rule.rate();
  auto rest = [&](double factor) { // 1 - factor^T
    Value power = b.create<PowOp>(b.constant(factor, given.getType()), rule.step());
    return rule.plus(b.neg(power), 1);
  };
  // After the first step there is no rest to divide by.
  auto later = [&](Value value) { return rule.byStep(b.constant(1, given.getType()), value); };
  Value rate = b.mul(given, b.div(later(rule.rootOf(rest(beta))), later(rest(alpha))));
  return rule.each([&](unsigned i) {
    Value gradient = rule.gradientOf(i);
    Value mean = b.add(b.scale(rule.of(2, i), alpha), b.scale(gradient, 1 - alpha));
    Value squares =
        b.add(b.scale(rule.of(3, i), beta), b.scale(b.mul(gradient, gradient), 1 - beta));
    Value step = b.div(rule.times(rate, mean), rule.plus(rule.rootOf(squares), epsilon));
    Value x = b.sub(rule.of(0, i), step);
    return SmallVector<Value>{after == 0 ? x : b.scale(x, 1 - after), mean, squares};
  });
}

static OnnxRegistration adagrad("Adagrad", 1, importAdagrad, nullptr, kDomain);
static OnnxRegistration adam("Adam", 1, importAdam, nullptr, kDomain);
static OnnxRegistration momentum = OnnxRegistration("Momentum", 1, importMomentum, nullptr, kDomain)
                                       .takes("mode", {"standard", "nesterov"});

} // namespace trainc::nn
