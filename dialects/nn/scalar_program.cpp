// SPDX-License-Identifier: Apache-2.0
//
// What each operation of the scalar language (arith, math) computes.
#include "dialects/nn/scalar_program.h"
#include "dialects/errors/internal_error.h"
#include "dialects/nn/nn.h"
#include "dialects/nn/scalar_code.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;

namespace trainc::nn {
namespace {

using Apply = ScalarProgram::Apply;
using Loop = void (*)(const ScalarLanes *const *, ScalarLanes &, int64_t);

template <typename T, typename Lanes> auto *lanes(Lanes &lanes) {
  if constexpr (std::is_same_v<T, float>)
    return lanes.f32;
  else if constexpr (std::is_same_v<T, double>)
    return lanes.f64;
  else {
    static_assert(std::is_same_v<T, int64_t>, "no lanes of this type");
    return lanes.integer;
  }
}

// What an element in memory is computed in: integers in 64 bits, narrow floats in f32.
template <typename Stored>
using LaneOf = std::conditional_t<std::is_integral_v<Stored>, int64_t,
                                  std::conditional_t<std::is_arithmetic_v<Stored>, Stored, float>>;

// Calls `function` with a zero of the type of the lanes that an element is computed in.
template <typename Function> auto withLaneType(Type type, Function function) {
  return withHostType(elementTypeOf(type).stored,
                      [&](auto zero) { return function(LaneOf<decltype(zero)>()); });
}

// A function on double over lanes of float rounds once, when its result is stored.
template <auto function, typename Result, typename... Operands>
void apply(const ScalarLanes *const *x, ScalarLanes &y, int64_t count) {
  auto run = [&]<size_t... index>(std::index_sequence<index...>) {
    Result *to = lanes<Result>(y);
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<Result>(function(lanes<Operands>(*x[index])[i]...));
  };
  run(std::index_sequence_for<Operands...>());
}

struct Primitive {
  const char *name;
  Loop f32, f64, integer; // by the type of the last operand
  bool exact = true;      // rounded correctly

  template <typename T> Loop on(T) const {
    if constexpr (std::is_same_v<T, float>)
      return f32;
    else if constexpr (std::is_same_v<T, double>)
      return f64;
    else {
      static_assert(std::is_same_v<T, int64_t>, "no lanes of this type");
      return integer;
    }
  }
};

template <auto function> constexpr Primitive real(const char *name) {
  return {name, apply<function, float, float>, apply<function, double, double>, nullptr};
}
template <auto function> constexpr Primitive reals(const char *name) {
  return {name, apply<function, float, float, float>, apply<function, double, double, double>,
          nullptr};
}
template <auto function> constexpr Primitive integers(const char *name) {
  return {name, nullptr, nullptr, apply<function, int64_t, int64_t, int64_t>};
}

uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

// Divisors of zero are found before.
int64_t quotient(int64_t a, int64_t b) { return b == -1 ? int64_t(-bits(a)) : a / b; }
int64_t remainder(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

// Towards zero; beyond the integers of T the nearest of them, of NaN 0.
template <typename T> int64_t truncated(double value) {
  if (std::isnan(value))
    return 0;
  double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  return value >= end    ? std::numeric_limits<T>::max()
         : value <= -end ? std::numeric_limits<T>::min()
                         : static_cast<T>(value);
}

const Primitive kPrimitives[] = {
    reals<[](auto a, auto b) { return a + b; }>("arith.addf"),
    reals<[](auto a, auto b) { return a - b; }>("arith.subf"),
    reals<[](auto a, auto b) { return a * b; }>("arith.mulf"),
    reals<[](auto a, auto b) { return a / b; }>("arith.divf"),
    reals<[](auto a, auto b) { return std::fmod(a, b); }>("arith.remf"),
    reals<[](auto a, auto b) { return (a > b) || a != a ? a : b; }>("arith.maximumf"),
    reals<[](auto a, auto b) { return a < b || a != a ? a : b; }>("arith.minimumf"),
    reals<[](auto a, auto b) { return (a > b) || b != b ? a : b; }>("arith.maxnumf"),
    reals<[](auto a, auto b) { return a < b || b != b ? a : b; }>("arith.minnumf"),
    reals<[](auto a, auto b) { return std::copysign(a, b); }>("math.copysign"),
    real<[](auto a) { return -a; }>("arith.negf"),
    real<[](auto a) { return std::fabs(a); }>("math.absf"),
    real<[](auto a) { return std::sqrt(a); }>("math.sqrt"),
    real<[](auto a) { return std::floor(a); }>("math.floor"),
    real<[](auto a) { return std::ceil(a); }>("math.ceil"),
    real<[](auto a) { return std::trunc(a); }>("math.trunc"),
    real<[](auto a) { return std::nearbyint(a); }>("math.roundeven"),
    {"math.powf", apply<[](double a, double b) { return std::pow(a, b); }, float, float, float>,
     apply<[](double a, double b) { return std::pow(a, b); }, double, double, double>, nullptr,
     false},
    {"math.fma",
     apply<[](auto a, auto b, auto c) { return std::fma(a, b, c); }, float, float, float, float>,
     apply<[](auto a, auto b, auto c) { return std::fma(a, b, c); }, double, double, double,
           double>,
     nullptr},
    integers<[](int64_t a, int64_t b) { return bits(a) + bits(b); }>("arith.addi"),
    integers<[](int64_t a, int64_t b) { return bits(a) - bits(b); }>("arith.subi"),
    integers<[](int64_t a, int64_t b) { return bits(a) * bits(b); }>("arith.muli"),
    integers<quotient>("arith.divsi"),
    integers<remainder>("arith.remsi"),
    integers<[](int64_t a, int64_t b) { return a & b; }>("arith.andi"),
    integers<[](int64_t a, int64_t b) { return a | b; }>("arith.ori"),
    integers<[](int64_t a, int64_t b) { return a ^ b; }>("arith.xori"),
    integers<[](int64_t a, int64_t b) { return bits(a) << b; }>("arith.shli"),
    integers<[](int64_t a, int64_t b) { return (a >> b); }>("arith.shrsi"),
    integers<[](int64_t a, int64_t b) { return (a > b) ? a : b; }>("arith.maxsi"),
    integers<[](int64_t a, int64_t b) { return a < b ? a : b; }>("arith.minsi"),
    {"math.absi", nullptr, nullptr,
     apply<[](int64_t a) { return a < 0 ? -bits(a) : bits(a); }, int64_t, int64_t>},
    {"arith.select",
     apply<[](int64_t c, float a, float b) { return c ? a : b; }, float, int64_t, float, float>,
     apply<[](int64_t c, double a, double b) { return c ? a : b; }, double, int64_t, double,
           double>,
     apply<[](int64_t c, int64_t a, int64_t b) { return c ? a : b; }, int64_t, int64_t, int64_t,
           int64_t>},
    // Conversions whose result has one form of register.
    {"arith.extf", apply<[](float a) { return a; }, double, float>, nullptr, nullptr},
    {"arith.truncf", nullptr, apply<[](double a) { return a; }, float, double>, nullptr},
    {"arith.extui", nullptr, nullptr, apply<[](int64_t a) { return a; }, int64_t, int64_t>},
    {"arith.extsi", nullptr, nullptr, apply<[](int64_t a) { return a; }, int64_t, int64_t>},
};

template <template <typename> typename Compare> Loop comparison(Type type) {
  return withLaneType(type, [](auto zero) -> Loop {
    using T = decltype(zero);
    return apply<[](T a, T b) { return Compare<T>()(a, b); }, int64_t, T, T>;
  });
}

Loop findComparison(arith::CmpFPredicate predicate, Type type) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
    return comparison<std::equal_to>(type);
  case P::UNE:
    return comparison<std::not_equal_to>(type);
  case P::OLT:
    return comparison<std::less>(type);
  case P::OLE:
    return comparison<std::less_equal>(type);
  case P::OGT:
    return comparison<std::greater>(type);
  case P::OGE:
    return comparison<std::greater_equal>(type);
  default:
    return nullptr;
  }
}

// Bools are 0 and 1, so that they compare as unsigned in either form.
Loop findComparison(arith::CmpIPredicate predicate, Type type) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return comparison<std::equal_to>(type);
  case P::ne:
    return comparison<std::not_equal_to>(type);
  case P::slt:
  case P::ult:
    return comparison<std::less>(type);
  case P::sle:
  case P::ule:
    return comparison<std::less_equal>(type);
  case P::sgt:
  case P::ugt:
    return comparison<std::greater>(type);
  case P::sge:
  case P::uge:
    return comparison<std::greater_equal>(type);
  }
  return nullptr;
}

Loop findConversion(Operation *op) {
  Type to = op->getResult(0).getType();
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return withLaneType(to, [](auto zero) -> Loop {
      return apply<[](int64_t a) { return a; }, decltype(zero), int64_t>;
    });
  if (isa<arith::TruncFOp>(op) && isNarrowFloat(to))
    return withLaneType(op->getOperand(0).getType(), [&](auto from) -> Loop {
      return withHostType(elementTypeOf(to).stored, [](auto zero) -> Loop {
        using From = decltype(from);
        using To = decltype(zero);
        return apply<[](From a) { return static_cast<float>(static_cast<To>(a)); }, float, From>;
      });
    });
  if (isa<arith::ExtFOp>(op) && isNarrowFloat(op->getOperand(0).getType()))
    return withLaneType(to, [](auto zero) -> Loop {
      return apply<[](float a) { return a; }, decltype(zero), float>;
    });
  if (isa<arith::FPToSIOp>(op))
    return withLaneType(op->getOperand(0).getType(), [&](auto from) -> Loop {
      return withHostType(elementTypeOf(to).stored, [](auto zero) -> Loop {
        if constexpr (std::is_integral_v<decltype(zero)>)
          return apply<truncated<decltype(zero)>, int64_t, decltype(from)>;
        return nullptr;
      });
    });
  if (isa<arith::TruncIOp>(op) && to.isInteger(1))
    return apply<[](int64_t a) { return a & 1; }, int64_t, int64_t>;
  if (isa<arith::TruncIOp>(op))
    return withHostType(elementTypeOf(to).stored, [](auto zero) -> Loop {
      return apply<[](int64_t a) { return static_cast<decltype(zero)>(a); }, int64_t, int64_t>;
    });
  return nullptr;
}

template <typename T> Apply loopOver(double (*function)(double)) {
  return [function](const ScalarLanes *const *x, ScalarLanes &y, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      lanes<T>(y)[i] = static_cast<T>(function(lanes<T>(*x[0])[i]));
  };
}

Apply find(Operation *op, bool &exact) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return findComparison(compare.getPredicate(), compare.getLhs().getType());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return findComparison(compare.getPredicate(), compare.getLhs().getType());
  if (Loop conversion = findConversion(op))
    return conversion;
  Type type = op->getOperands().back().getType();
  if (const ElementaryFunction *function = findElementaryFunction(op->getName().getStringRef())) {
    exact = false;
    return withLaneType(type, [&](auto zero) -> Apply {
      if constexpr (std::is_floating_point_v<decltype(zero)>)
        return loopOver<decltype(zero)>(function->evaluate);
      return nullptr;
    });
  }
  for (const Primitive &primitive : kPrimitives)
    if (op->getName().getStringRef() == primitive.name) {
      exact &= primitive.exact;
      return withLaneType(type, [&](auto zero) { return primitive.on(zero); });
    }
  return nullptr;
}

// Calls `function` with a zero of the type in memory and one of the lanes' type.
template <typename Function> void withTypes(const Tensor &tensor, Function function) {
  const ElementType &type = elementTypeOf(tensor.type());
  withHostType(type.stored, [&](auto stored) { function(stored, LaneOf<decltype(stored)>()); });
}

void loadLanes(const Tensor &tensor, int64_t first, int64_t count, ScalarLanes &to) {
  withTypes(tensor, [&](auto element, auto lane) {
    const char *from = tensor.at(first);
    const size_t step = tensor.isSplat() ? 0 : sizeof element;
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(&element, from + i * step, sizeof element);
      lanes<decltype(lane)>(to)[i] = element;
    }
  });
}

void storeLanes(const ScalarLanes &from, Tensor &tensor, int64_t first, int64_t count) {
  char *to = tensor.data() + first * tensor.width();
  withTypes(tensor, [&](auto element, auto lane) {
    for (int64_t i = 0; i < count; ++i) {
      element = static_cast<decltype(element)>(lanes<decltype(lane)>(from)[i]); // integers wrap
      std::memcpy(to + i * sizeof element, &element, sizeof element);
    }
  });
}

} // namespace

ScalarProgram::ScalarProgram(Operation *op) {
  Block block;
  SmallVector<Value> arguments;
  DenseMap<Value, unsigned> numbers;
  for (Value operand : op->getOperands()) {
    inputs.push_back(tensorType(operand).getElementType());
    arguments.push_back(block.addArgument(scalarTypeOf(inputs.back()), op->getLoc()));
    numbers[arguments.back()] = registerCount++;
  }
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&block);
  Value value = buildScalar(builder, op, arguments);
  for (Operation &scalar : block) {
    numbers[scalar.getResult(0)] = registerCount;
    if (auto constant = dyn_cast<arith::ConstantOp>(scalar))
      addConstant(constant.getValue());
    else
      addStep(&scalar, llvm::map_to_vector(scalar.getOperands(),
                                           [&](Value v) { return numbers.lookup(v); }));
    ++registerCount;
  }
  result = numbers.lookup(value);
}

void ScalarProgram::addConstant(Attribute value) {
  ScalarLanes &filled = constants.emplace_back(registerCount, ScalarLanes()).second;
  if (auto number = dyn_cast<FloatAttr>(value)) {
    return withLaneType(number.getType(), [&](auto zero) {
      auto *to = lanes<decltype(zero)>(filled);
      std::fill(to, to + ScalarLanes::kCount,
                static_cast<decltype(zero)>(number.getValueAsDouble()));
    });
  }
  auto number = cast<IntegerAttr>(value);
  bool boolean = number.getType().isInteger(1);
  int64_t integer = boolean ? number.getValue().getZExtValue() : number.getValue().getSExtValue();
  std::fill(std::begin(filled.integer), std::end(filled.integer), integer);
}

void ScalarProgram::addStep(Operation *op, ArrayRef<unsigned> operands) {
  Apply apply = find(op, exact);
  if (!apply)
    internalError(op, "the reference interpreter does not know this scalar operation");
  steps.push_back({apply, SmallVector<unsigned, 3>(operands), registerCount,
                   isa<arith::DivSIOp, arith::RemSIOp>(op)});
}

bool ScalarProgram::runLanes(std::vector<ScalarLanes> &registers, int64_t count) const {
  for (const Step &step : steps) {
    const ScalarLanes *operands[3] = {};
    for (auto [i, number] : llvm::enumerate(step.operands))
      operands[i] = &registers[number];
    if (step.dividesIntegers &&
        std::count(operands[1]->integer, operands[1]->integer + count, int64_t(0)))
      return false;
    step.apply(operands, registers[step.result], count);
  }
  return true;
}

Tensor ScalarProgram::run(ArrayRef<Tensor> operands, RankedTensorType type) const {
  bool splat = type.getNumElements() > 0 &&
               llvm::all_of(operands, [](const Tensor &operand) { return operand.isSplat(); });
  Tensor value(splat ? type.clone(ArrayRef<int64_t>()) : type);
  std::vector<ScalarLanes> registers(registerCount);
  for (const auto &[number, lanes] : constants)
    registers[number] = lanes;
  for (int64_t first = 0, end = value.count(); first < end; first += ScalarLanes::kCount) {
    int64_t count = std::min(ScalarLanes::kCount, end - first);
    for (auto [i, operand] : llvm::enumerate(operands))
      loadLanes(operand, first, count, registers[i]);
    if (!runLanes(registers, count))
      return {};
    storeLanes(registers[result], value, first, count);
  }
  return splat ? Tensor::splat(type, ArrayRef<char>(value.at(0), value.width())) : value;
}

} // namespace trainc::nn
