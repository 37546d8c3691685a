// SPDX-License-Identifier: Apache-2.0
//
// Primitives of pointwise.td become one arith or math operation; a record with a
// value expression is expanded through its parsed form (scalar_code.h).
#include "dialects/nn/scalar_code.h"
#include "dialects/errors/internal_error.h"
#include "dialects/nn/expression.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace trainc {
namespace {

template <typename Op> Value createUnary(OpBuilder &builder, Location location, Value x) {
  return builder.create<Op>(location, x);
}

template <typename Op> ElementaryFunction elementary(StringRef name, double (*evaluate)(double)) {
  return {name, Op::getOperationName(), createUnary<Op>, evaluate};
}

using nn::Expression;
using Operands = ArrayRef<Value>;

/// An operation that is one of arith or math.
struct ScalarOperation {
  StringLiteral name;
  Value (*create)(OpBuilder &, Location, Operands);
};

template <typename Op> Value ofOne(OpBuilder &builder, Location location, Operands x) {
  return builder.create<Op>(location, x[0]);
}
template <typename Op> Value ofTwo(OpBuilder &builder, Location location, Operands x) {
  return builder.create<Op>(location, x[0], x[1]);
}

constexpr ScalarOperation kFloatOperations[] = {
    {"add", ofTwo<arith::AddFOp>},         {"sub", ofTwo<arith::SubFOp>},
    {"mul", ofTwo<arith::MulFOp>},         {"div", ofTwo<arith::DivFOp>},
    {"neg", ofOne<arith::NegFOp>},         {"abs", ofOne<math::AbsFOp>},
    {"sqrt", ofOne<math::SqrtOp>},         {"pow", ofTwo<math::PowFOp>},
    {"floor", ofOne<math::FloorOp>},       {"ceil", ofOne<math::CeilOp>},
    {"round", ofOne<math::RoundEvenOp>},   {"remainder", ofTwo<arith::RemFOp>},
    {"minimum", ofTwo<arith::MinimumFOp>}, {"maximum", ofTwo<arith::MaximumFOp>}};

constexpr ScalarOperation kIntegerOperations[] = {
    {"and", ofTwo<arith::AndIOp>},      {"bit_and", ofTwo<arith::AndIOp>},
    {"or", ofTwo<arith::OrIOp>},        {"bit_or", ofTwo<arith::OrIOp>},
    {"xor", ofTwo<arith::XOrIOp>},      {"bit_xor", ofTwo<arith::XOrIOp>},
    {"add", ofTwo<arith::AddIOp>},      {"sub", ofTwo<arith::SubIOp>},
    {"mul", ofTwo<arith::MulIOp>},      {"div", ofTwo<arith::DivSIOp>},
    {"abs", ofOne<math::AbsIOp>},       {"remainder", ofTwo<arith::RemSIOp>},
    {"minimum", ofTwo<arith::MinSIOp>}, {"maximum", ofTwo<arith::MaxSIOp>}};

// Where bools have another one than integers.
constexpr ScalarOperation kBoolOperations[] = {{"add", ofTwo<arith::OrIOp>},
                                               {"maximum", ofTwo<arith::OrIOp>},
                                               {"mul", ofTwo<arith::AndIOp>},
                                               {"minimum", ofTwo<arith::AndIOp>}};

using CmpF = arith::CmpFPredicate;
using CmpI = arith::CmpIPredicate;

struct ScalarComparison {
  StringLiteral name;
  CmpF ofFloats;
  CmpI asSigned, asUnsigned;
};

constexpr ScalarComparison kScalarComparisons[] = {
    {"equal", CmpF::OEQ, CmpI::eq, CmpI::eq},
    {"less", CmpF::OLT, CmpI::slt, CmpI::ult},
    {"less_or_equal", CmpF::OLE, CmpI::sle, CmpI::ule},
    {"greater", CmpF::OGT, CmpI::sgt, CmpI::ugt},
    {"greater_or_equal", CmpF::OGE, CmpI::sge, CmpI::uge},
};

/// The entry of that name; null where the table has none.
template <typename Entry> const Entry *entryNamed(StringRef name, ArrayRef<Entry> table) {
  const auto *found = llvm::find_if(table, [&](const Entry &entry) { return entry.name == name; });
  return found == table.end() ? nullptr : found;
}

class ScalarBuilder {
public:
  ScalarBuilder(OpBuilder &builder, Location location) : builder(builder), location(location) {}

  bool isMissing = false; // some code, where that is asked
  bool asks = false;

  Value call(StringRef name, Operands operands) {
    if (Value value = primitive(name, operands))
      return value;
    auto registered = RegisteredOperationName::lookup(("nn." + name).str(), builder.getContext());
    auto *record = registered ? registered->getInterface<nn::PointwiseOpInterface>() : nullptr;
    bool isKnown = record && !record->valueExpression().empty();
    if (!isKnown && asks) {
      isMissing = true;
      return operands.back();
    }
    if (!isKnown)
      internalError("pointwise operation '" + name + "' has no scalar code");
    llvm::StringMap<Value> names;
    for (auto [operandName, operand] : llvm::zip(record->operandNames(), operands))
      names[operandName] = operand;
    return expand(nn::parseExpression(record->valueExpression()), names, operands.back().getType());
  }

private:
  template <typename Op, typename... Args> Value create(Args &&...args) {
    return builder.create<Op>(location, std::forward<Args>(args)...);
  }

  Value expand(const Expression &expression, const llvm::StringMap<Value> &names, Type type) {
    if (expression.kind == Expression::Kind::number)
      return scalarConstant(builder, location, expression.number, type);
    if (expression.kind == Expression::Kind::name)
      return names.lookup(expression.name);
    SmallVector<Value> operands;
    for (const auto &operand : expression.operands)
      operands.push_back(expand(*operand, names, type));
    return call(expression.name, operands);
  }

  Value primitive(StringRef name, Operands x) {
    Type type = x.back().getType();
    if (name == "select")
      return create<arith::SelectOp>(x[0], x[1], x[2]);
    return isa<FloatType>(type) ? ofFloats(name, x) : ofIntegers(name, x);
  }

  Value ofTable(ArrayRef<ScalarOperation> table, StringRef name, Operands x) {
    const ScalarOperation *operation = entryNamed(name, table);
    return operation ? operation->create(builder, location, x) : Value();
  }

  Value ofFloats(StringRef name, Operands x) {
    if (const ElementaryFunction *function = entryNamed(name, elementaryFunctions()))
      return function->create(builder, location, x[0]);
    if (const auto *comparison = entryNamed(name, ArrayRef(kScalarComparisons)))
      return create<arith::CmpFOp>(comparison->ofFloats, x[0], x[1]);
    if (name == "is_nan")
      return create<arith::CmpFOp>(CmpF::UNE, x[0], x[0]);
    return ofTable(kFloatOperations, name, x);
  }

  Value ofIntegers(StringRef name, Operands x) {
    Type type = x.back().getType();
    bool boolean = type.isInteger(1);
    auto constant = [&](int64_t value) {
      return create<arith::ConstantOp>(builder.getIntegerAttr(type, value));
    };
    if (const auto *comparison = entryNamed(name, ArrayRef(kScalarComparisons))) {
      CmpI predicate = comparison->asSigned;
      if (x[0] == x[1]) // host compilers warn of code that compares a value with itself
        return create<arith::ConstantOp>(builder.getBoolAttr(
            predicate == CmpI::eq || predicate == CmpI::sle || predicate == CmpI::sge));
      return create<arith::CmpIOp>(boolean ? comparison->asUnsigned : predicate, x[0], x[1]);
    }
    if (name == "not")
      return create<arith::XOrIOp>(x[0], constant(1));
    if (name == "neg")
      return create<arith::SubIOp>(constant(0), x[0]);
    if (name == "floor" || name == "ceil" || name == "round")
      return x[0];
    if (name == "is_nan")
      return create<arith::ConstantOp>(builder.getBoolAttr(false));
    if (name == "pow") {
      Value power = create<math::PowFOp>(castScalar(builder, location, x[0], builder.getF64Type()),
                                         castScalar(builder, location, x[1], builder.getF64Type()));
      return castScalar(builder, location, power, type);
    }
    Value ofBools = boolean ? ofTable(kBoolOperations, name, x) : Value();
    return ofBools ? ofBools : ofTable(kIntegerOperations, name, x);
  }

  OpBuilder &builder;
  Location location;
};

} // namespace

ArrayRef<ElementaryFunction> elementaryFunctions() {
  static const ElementaryFunction functions[] = {
      elementary<math::ExpOp>("exp", std::exp),       elementary<math::LogOp>("log", std::log),
      elementary<math::Log1pOp>("log1p", std::log1p), elementary<math::TanhOp>("tanh", std::tanh),
      elementary<math::ErfOp>("erf", std::erf),       elementary<math::SinOp>("sin", std::sin),
      elementary<math::ExpM1Op>("expm1", std::expm1), elementary<math::AsinOp>("asin", std::asin),
      elementary<math::AcosOp>("acos", std::acos),    elementary<math::CosOp>("cos", std::cos),
      elementary<math::AtanOp>("atan", std::atan),
  };
  return functions;
}

const ElementaryFunction *findElementaryFunction(StringRef operation) {
  for (const ElementaryFunction &function : elementaryFunctions())
    if (operation == function.operation)
      return &function;
  return nullptr;
}

bool hasScalarCode(StringRef name, unsigned operands, Type scalar) {
  Block block;
  OpBuilder at(scalar.getContext());
  at.setInsertionPointToEnd(&block);
  SmallVector<Value> arguments;
  for (unsigned i = 0; i < operands; ++i)
    arguments.push_back(block.addArgument(scalar, at.getUnknownLoc()));
  ScalarBuilder builder(at, at.getUnknownLoc());
  builder.asks = true;
  builder.call(name, arguments);
  return !builder.isMissing;
}

Type scalarTypeOf(Type element) {
  if (isa<FloatType>(element))
    return sumTypeOf(element);
  bool isNumber = isa<IntegerType>(element) && !element.isInteger(1);
  return isNumber ? IntegerType::get(element.getContext(), 64) : element;
}

// A register holds more than an i32: what leaves its range wraps here, whether or not the value
// goes through memory before its next use. Likewise a narrow float is rounded. arith has no
// unsigned types.
static Value wrapped(OpBuilder &builder, Location location, Value value, Type element) {
  if (scalarTypeOf(element) == element)
    return value;
  if (isa<FloatType>(element)) {
    Value narrow = builder.create<arith::TruncFOp>(location, element, value);
    return builder.create<arith::ExtFOp>(location, scalarTypeOf(element), narrow);
  }
  if (element.isUnsignedInteger())
    return builder.create<arith::AndIOp>(
        location, value,
        scalarConstant(builder, location, std::exp2(element.getIntOrFloatBitWidth()) - 1,
                       value.getType()));
  Value low = builder.create<arith::TruncIOp>(location, element, value);
  return builder.create<arith::ExtSIOp>(location, scalarTypeOf(element), low);
}

// Operations whose result can be a number of the type that none of the operands is.
static bool canOverflow(StringRef name, Type element) {
  if (isa<FloatType>(element))
    return name != "select" && name != "neg" && name != "abs";
  return llvm::is_contained({"add", "sub", "mul", "div", "neg", "abs", "pow", "bit_not"}, name);
}

Value scalarConstant(OpBuilder &builder, Location location, double value, Type type) {
  if (isa<FloatType>(type))
    return builder.create<arith::ConstantOp>(location, builder.getFloatAttr(type, value));
  return builder.create<arith::ConstantOp>(location, builder.getIntegerAttr(type, int64_t(value)));
}

Value castScalar(OpBuilder &builder, Location location, Value value, Type to) {
  Type from = value.getType();
  to = scalarTypeOf(to);
  if (from == to)
    return value;
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  if (to.isInteger(1)) {
    Value zero = scalarConstant(builder, location, 0, from);
    if (fromFloat)
      return builder.create<arith::CmpFOp>(location, arith::CmpFPredicate::UNE, value, zero);
    return builder.create<arith::CmpIOp>(location, arith::CmpIPredicate::ne, value, zero);
  }
  if (fromFloat && toFloat) {
    if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return builder.create<arith::ExtFOp>(location, to, value);
    return builder.create<arith::TruncFOp>(location, to, value);
  }
  if (fromFloat)
    return builder.create<arith::FPToSIOp>(location, to, value);
  if (toFloat && from.isInteger(1))
    return builder.create<arith::UIToFPOp>(location, to, value);
  if (toFloat)
    return builder.create<arith::SIToFPOp>(location, to, value);
  if (from.isInteger(1))
    return builder.create<arith::ExtUIOp>(location, to, value);
  if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return builder.create<arith::ExtSIOp>(location, to, value);
  return builder.create<arith::TruncIOp>(location, to, value);
}

Value buildScalar(OpBuilder &builder, Operation *op, ValueRange operands) {
  Type element = nn::tensorType(op->getResult(0)).getElementType();
  if (isa<nn::CastOp>(op)) {
    Value value = castScalar(builder, op->getLoc(), operands[0], element);
    bool fits = nn::tensorType(op->getOperand(0)).getElementType().isInteger(1);
    return fits ? value : wrapped(builder, op->getLoc(), value, element);
  }
  StringRef name = op->getName().stripDialect();
  SmallVector<Value> list(operands);
  Location inner = withoutRole(op->getLoc());
  Value result = ScalarBuilder(builder, inner).call(name, list);
  if (canOverflow(name, element))
    result = wrapped(builder, inner, result, element);
  // A role is the last value's, not that of those on the way.
  if (Operation *last = result.getDefiningOp();
      last && last->getLoc() == inner && !llvm::is_contained(list, result))
    last->setLoc(op->getLoc());
  return result;
}

} // namespace trainc
