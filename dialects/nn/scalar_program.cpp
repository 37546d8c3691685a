// SPDX-License-Identifier: Apache-2.0
//
// What each operation of the scalar language (arith, math) computes.
#include "dialects/nn/scalar_program.h"
#include "dialects/nn/nn.h"
#include "dialects/nn/scalar_code.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>
#include <cstring>

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
  else
    return lanes.integer;
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

int64_t truncated(double value) { // a NaN fails the comparison
  return std::fabs(value) < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
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
    {"arith.fptosi", apply<truncated, int64_t, float>, apply<truncated, int64_t, double>, nullptr},
    {"arith.extf", apply<[](float a) { return a; }, double, float>, nullptr, nullptr},
    {"arith.truncf", nullptr, apply<[](double a) { return a; }, float, double>, nullptr},
    {"arith.extui", nullptr, nullptr, apply<[](int64_t a) { return a; }, int64_t, int64_t>},
    {"arith.extsi", nullptr, nullptr, apply<[](int64_t a) { return a; }, int64_t, int64_t>},
};

template <template <typename> typename Compare> Loop comparison(Type type) {
  if (type.isF32())
    return apply<[](float a, float b) { return Compare<float>()(a, b); }, int64_t, float, float>;
  if (type.isF64())
    return apply<[](double a, double b) { return Compare<double>()(a, b); }, int64_t, double,
                 double>;
  return apply<[](int64_t a, int64_t b) { return Compare<int64_t>()(a, b); }, int64_t, int64_t,
               int64_t>;
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
    return to.isF32() ? Loop(apply<[](int64_t a) { return a; }, float, int64_t>)
                      : Loop(apply<[](int64_t a) { return a; }, double, int64_t>);
  if (isa<arith::TruncIOp>(op) && to.isInteger(32))
    return apply<[](int64_t a) { return static_cast<int32_t>(a); }, int64_t, int64_t>;
  if (isa<arith::TruncIOp>(op) && to.isInteger(1))
    return apply<[](int64_t a) { return a & 1; }, int64_t, int64_t>;
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
    return type.isF32() ? loopOver<float>(function->evaluate)
                        : loopOver<double>(function->evaluate);
  }
  for (const Primitive &primitive : kPrimitives)
    if (op->getName().getStringRef() == primitive.name) {
      exact &= primitive.exact;
      return type.isF32() ? primitive.f32 : type.isF64() ? primitive.f64 : primitive.integer;
    }
  return nullptr;
}

// Lanes of the C++ type that holds an element in memory.
template <typename Element, typename Lane>
void load(const Tensor &tensor, int64_t first, int64_t count, Lane *to) {
  for (int64_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, tensor.at(first + i), sizeof element);
    to[i] = element;
  }
}

void loadLanes(const Tensor &tensor, int64_t first, int64_t count, ScalarLanes &lanes) {
  Type type = tensor.type().getElementType();
  if (type.isF32())
    return load<float>(tensor, first, count, lanes.f32);
  if (type.isF64())
    return load<double>(tensor, first, count, lanes.f64);
  if (type.isInteger(64))
    return load<int64_t>(tensor, first, count, lanes.integer);
  for (int64_t i = 0; i < count; ++i)
    lanes.integer[i] = tensor.integer(first + i);
}

void storeLanes(const ScalarLanes &lanes, Tensor &tensor, int64_t first, int64_t count) {
  Type type = tensor.type().getElementType();
  char *to = tensor.data() + first * tensor.width();
  if (type.isF32())
    std::memcpy(to, lanes.f32, count * sizeof(float));
  else if (type.isF64())
    std::memcpy(to, lanes.f64, count * sizeof(double));
  else // little endian: the low bytes are the value wrapped
    for (int64_t i = 0, width = tensor.width(); i < count; ++i)
      std::memcpy(to + i * width, &lanes.integer[i], width);
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
  ScalarLanes &lanes = constants.emplace_back(registerCount, ScalarLanes()).second;
  if (auto number = dyn_cast<FloatAttr>(value)) {
    if (number.getType().isF32())
      std::fill(std::begin(lanes.f32), std::end(lanes.f32), number.getValue().convertToFloat());
    else
      std::fill(std::begin(lanes.f64), std::end(lanes.f64), number.getValueAsDouble());
    return;
  }
  auto number = cast<IntegerAttr>(value);
  bool boolean = number.getType().isInteger(1);
  int64_t integer = boolean ? number.getValue().getZExtValue() : number.getValue().getSExtValue();
  std::fill(std::begin(lanes.integer), std::end(lanes.integer), integer);
}

void ScalarProgram::addStep(Operation *op, ArrayRef<unsigned> operands) {
  Apply apply = find(op, exact);
  if (!apply)
    llvm::report_fatal_error(llvm::Twine("the reference interpreter does not know scalar "
                                         "operation '") +
                             op->getName().getStringRef() + "'");
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
