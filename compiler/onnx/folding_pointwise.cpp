// SPDX-License-Identifier: Apache-2.0
//
// Folding of operators that work element by element.
#include "compiler/onnx/folding.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace llvm;

namespace trainc::reader {

using RealFunction = double (*)(double);
using RealPair = double (*)(double, double);
using IntegerPair = int64_t (*)(int64_t, int64_t);

// Both operands at one shape; false where they do not fit.
static bool unify(const FoldNode &node, Constant &a, Constant &b) {
  if (!node.has(0) || !node.has(1) || node.input(0).isReal() != node.input(1).isReal())
    return false;
  auto shape = broadcastShape(node.input(0).shape, node.input(1).shape);
  if (!shape || elementCount(*shape) > kLargestHostTensor)
    return false;
  a = broadcastConstant(node.inputs[0], *shape);
  b = broadcastConstant(node.inputs[1], *shape);
  return a && b;
}

static Constant combine(const Constant &a, const Constant &b, RealPair real, IntegerPair integer) {
  auto result = makeHostTensor(a->element, a->shape);
  for (int64_t i = 0, count = result->count(); i < count; ++i)
    if (result->isReal())
      result->setReal(i, real(a->reals[i], b->reals[i]));
    else
      result->integers[i] = integer(a->integers[i], b->integers[i]);
  return result;
}

// Integer arithmetic wraps, as in every implementation.
static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

static int64_t integerPower(int64_t base, int64_t exponent) {
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return wrap(result);
}

static int64_t pythonModulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t rest = a % b;
  return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double realModulo(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? std::copysign(rest, b) : rest;
}

static std::pair<RealPair, IntegerPair> arithmetic(StringRef opType) {
  if (opType == "Add" || opType == "Sum")
    return {[](double a, double b) { return a + b; },
            [](int64_t a, int64_t b) { return wrap(uint64_t(a) + uint64_t(b)); }};
  if (opType == "Sub")
    return {[](double a, double b) { return a - b; },
            [](int64_t a, int64_t b) { return wrap(uint64_t(a) - uint64_t(b)); }};
  if (opType == "Mul")
    return {[](double a, double b) { return a * b; },
            [](int64_t a, int64_t b) { return wrap(uint64_t(a) * uint64_t(b)); }};
  if (opType == "Div")
    return {[](double a, double b) { return a / b; },
            [](int64_t a, int64_t b) { return b == -1 ? wrap(-uint64_t(a))
                                              : b     ? a / b
                                                      : 0; }};
  if (opType == "Max")
    return {[](double a, double b) { return std::isnan(a) || a > b ? a : b; },
            [](int64_t a, int64_t b) { return std::max(a, b); }};
  if (opType == "Min")
    return {[](double a, double b) { return std::isnan(a) || a < b ? a : b; },
            [](int64_t a, int64_t b) { return std::min(a, b); }};
  return {realModulo, pythonModulo};
}

static Folded foldArithmetic(const FoldNode &node) {
  Constant a, b;
  if (!unify(node, a, b))
    return std::nullopt;
  auto [real, integer] = arithmetic(node.node.opType());
  if (node.node.opType() == "Mod" && node.node.integer("fmod", 0)) {
    real = [](double a, double b) { return std::fmod(a, b); };
    integer = [](int64_t a, int64_t b) { return b == 0 || b == -1 ? int64_t(0) : a % b; };
  }
  return single(combine(a, b, real, integer));
}

// Sum, Max and Min take any number of inputs.
static Folded foldVariadic(const FoldNode &node) {
  if (node.inputs.empty())
    return std::nullopt;
  auto [real, integer] = arithmetic(node.node.opType());
  Constant result = node.inputs[0];
  for (const Constant &next : node.inputs.drop_front()) {
    std::vector<Constant> pair = {result, next};
    Constant a, b;
    if (!unify({node.node, pair}, a, b))
      return std::nullopt;
    result = combine(a, b, real, integer);
  }
  return single(result);
}

// The exponent may have another type than the base, whose type the result has.
static Folded foldPow(const FoldNode &node) {
  if (!node.has(0) || !node.has(1))
    return std::nullopt;
  std::vector<Constant> pair = {node.inputs[0], converted(node.input(1), node.input(0).element)};
  if (!node.input(0).isReal() && node.input(1).isReal())
    return std::nullopt;
  Constant a, b;
  if (!pair[1] || !unify({node.node, pair}, a, b))
    return std::nullopt;
  return single(combine(
      a, b, [](double x, double e) { return std::pow(x, e); }, integerPower));
}

template <typename Value> static bool compare(StringRef opType, Value a, Value b) {
  return llvm::StringSwitch<bool>(opType)
      .Case("Equal", a == b)
      .Case("Less", a < b)
      .Case("LessOrEqual", a <= b)
      .Case("Greater", a > b)
      .Case("GreaterOrEqual", a >= b)
      .Case("And", a && b)
      .Case("Or", a || b)
      .Default(static_cast<bool>(a) != static_cast<bool>(b)); // Xor
}

static Folded foldComparison(const FoldNode &node) {
  Constant a, b;
  if (!unify(node, a, b))
    return std::nullopt;
  auto result = makeHostTensor(Element::boolean, a->shape);
  StringRef opType = node.node.opType();
  for (int64_t i = 0, count = result->count(); i < count; ++i)
    result->integers[i] = a->isReal() ? compare(opType, a->reals[i], b->reals[i])
                                      : compare(opType, a->integers[i], b->integers[i]);
  return single(result);
}

static RealFunction unary(StringRef opType) {
  return llvm::StringSwitch<RealFunction>(opType)
      .Case("Neg", [](double x) { return -x; })
      .Case("Abs", [](double x) { return std::fabs(x); })
      .Case("Sqrt", [](double x) { return std::sqrt(x); })
      .Case("Exp", [](double x) { return std::exp(x); })
      .Case("Log", [](double x) { return std::log(x); })
      .Case("Sin", [](double x) { return std::sin(x); })
      .Case("Cos", [](double x) { return std::cos(x); })
      .Case("Tanh", [](double x) { return std::tanh(x); })
      .Case("Erf", [](double x) { return std::erf(x); })
      .Case("Floor", [](double x) { return std::floor(x); })
      .Case("Ceil", [](double x) { return std::ceil(x); })
      .Case("Round", [](double x) { return std::nearbyint(x); })
      .Case("Sign", [](double x) { return x > 0   ? 1.0
                                          : x < 0 ? -1.0
                                                  : x; })
      .Case("Reciprocal", [](double x) { return 1 / x; })
      .Case("Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); })
      .Case("Relu", [](double x) { return x > 0 || std::isnan(x) ? x : 0.0; })
      .Default(nullptr);
}

static Folded foldUnary(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  StringRef opType = node.node.opType();
  const HostTensor &x = node.input(0);
  auto result = makeHostTensor(x.element, x.shape);
  if (!result)
    return std::nullopt;
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    if (x.isReal())
      result->setReal(i, unary(opType)(x.reals[i]));
    else if (opType == "Neg")
      result->integers[i] = wrap(-uint64_t(x.integers[i]));
    else if (opType == "Abs")
      result->integers[i] = x.integers[i] < 0 ? wrap(-uint64_t(x.integers[i])) : x.integers[i];
    else if (opType == "Sign")
      result->integers[i] = (x.integers[i] > 0) - (x.integers[i] < 0);
    else if (opType == "Relu")
      result->integers[i] = std::max<int64_t>(x.integers[i], 0);
    else
      return std::nullopt;
  }
  return single(result);
}

static Folded foldTest(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  const HostTensor &x = node.input(0);
  auto result = makeHostTensor(Element::boolean, x.shape);
  StringRef opType = node.node.opType();
  for (int64_t i = 0, count = x.count(); i < count; ++i)
    result->integers[i] =
        opType == "Not" ? !x.integers[i]
        : !x.isReal()   ? 0
        : opType == "IsNaN"
            ? std::isnan(x.reals[i])
            : std::isinf(x.reals[i]) &&
                  node.node.integer(x.reals[i] > 0 ? "detect_positive" : "detect_negative", 1);
  return single(result);
}

static Folded foldWhere(const FoldNode &node) {
  if (!node.has(0) || !node.has(1) || !node.has(2))
    return std::nullopt;
  auto shape = broadcastShape(node.input(0).shape, node.input(1).shape);
  if (shape)
    shape = broadcastShape(*shape, node.input(2).shape);
  if (!shape || elementCount(*shape) > kLargestHostTensor || node.input(0).isReal() ||
      node.input(1).element != node.input(2).element)
    return std::nullopt;
  Constant condition = broadcastConstant(node.inputs[0], *shape);
  Constant a = broadcastConstant(node.inputs[1], *shape);
  Constant b = broadcastConstant(node.inputs[2], *shape);
  auto result = makeHostTensor(a->element, *shape);
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    const HostTensor &chosen = condition->integers[i] ? *a : *b;
    if (result->isReal())
      result->reals[i] = chosen.reals[i];
    else
      result->integers[i] = chosen.integers[i];
  }
  return single(result);
}

static Folded foldCast(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  Element element = Element::unsupported;
  if (node.node.opType() == "Cast")
    element = elementOf(static_cast<int32_t>(node.node.integer("to", 0)));
  else if (node.has(1))
    element = node.input(1).element;
  if (element == Element::unsupported)
    return std::nullopt;
  return single(converted(node.input(0), element));
}

static Folded foldIdentity(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  return single(node.inputs[0]);
}

static Folded foldClip(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  auto result = std::make_shared<HostTensor>(node.input(0));
  for (unsigned bound : {1u, 2u}) {
    if (!node.has(bound))
      continue;
    if (node.input(bound).count() != 1 || node.input(bound).element != result->element)
      return std::nullopt;
    for (double &value : result->reals)
      value = bound == 1 ? std::max(value, node.input(bound).reals[0])
                         : std::min(value, node.input(bound).reals[0]);
    for (int64_t &value : result->integers)
      value = bound == 1 ? std::max(value, node.input(bound).integers[0])
                         : std::min(value, node.input(bound).integers[0]);
  }
  return single(result);
}

static FoldRegistration binary({"Add", "Sub", "Mul", "Div", "Mod"}, foldArithmetic);
static FoldRegistration variadic({"Sum", "Max", "Min"}, foldVariadic);
static FoldRegistration power({"Pow"}, foldPow);
static FoldRegistration comparison({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
                                    "And", "Or", "Xor"},
                                   foldComparison);
static FoldRegistration unaries({"Neg", "Abs", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tanh", "Erf",
                                 "Floor", "Ceil", "Round", "Sign", "Reciprocal", "Sigmoid", "Relu"},
                                foldUnary);
static FoldRegistration tests({"Not", "IsNaN", "IsInf"}, foldTest);
static FoldRegistration where({"Where"}, foldWhere);
static FoldRegistration casts({"Cast", "CastLike"}, foldCast);
static FoldRegistration identity({"Identity"}, foldIdentity);
static FoldRegistration clip({"Clip"}, foldClip);

} // namespace trainc::reader
