// SPDX-License-Identifier: Apache-2.0
//
// Scalar code of kernel bodies as C++ text.
#include "compiler/emit/expressions.h"
#include "compiler/emit/value_names.h"
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "dialects/nn/scalar_code.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace trainc;

StringRef trainc::scalarType(Type type) { return elementTypeOf(type).scalarName; }

std::string trainc::literal(Attribute element) {
  if (auto number = dyn_cast<FloatAttr>(element))
    return floatLiteral(number.getValue());
  auto number = dyn_cast<IntegerAttr>(element);
  if (!number)
    internalError("a literal is a number");
  if (number.getType().isSignlessInteger(1))
    return number.getValue().isZero() ? "0" : "1";
  return integerLiteral(number.getType().isUnsignedInteger()
                            ? static_cast<int64_t>(number.getUInt())
                            : number.getInt());
}

StringRef trainc::elementType(Type type) { return elementTypeOf(type).storedName; }

namespace {

enum Precedence { kSelect = 2, kBitwise = 6, kCompare = 9, kAdd = 12, kMultiply = 13, kUnary = 15 };
constexpr int kPrimary = 20;
constexpr size_t kInlineLength = 70; // characters of an expression that stays part of another

struct Operator {
  const char *name;
  const char *text; // "+" between operands, "-" before one, or a function's name
  int precedence;   // kPrimary: a function
};

const Operator kOperators[] = {
    {"arith.addf", "+", kAdd},
    {"arith.addi", "+", kAdd},
    {"arith.subf", "-", kAdd},
    {"arith.subi", "-", kAdd},
    {"arith.mulf", "*", kMultiply},
    {"arith.muli", "*", kMultiply},
    {"arith.divf", "/", kMultiply},
    {"arith.divsi", "/", kMultiply},
    {"arith.remsi", "%", kMultiply},
    {"arith.andi", "&", kBitwise},
    {"arith.ori", "|", kBitwise},
    {"arith.xori", "^", kBitwise},
    {"arith.shli", "<<", kBitwise},
    {"arith.shrsi", ">>", kBitwise},
    {"arith.negf", "-", kUnary},
    {"arith.remf", "fmod", kPrimary},
    {"arith.maximumf", "maximum", kPrimary},
    {"arith.minimumf", "minimum", kPrimary},
    {"arith.maxnumf", "maximum_number", kPrimary},
    {"arith.minnumf", "minimum_number", kPrimary},
    {"arith.maxsi", "maximum", kPrimary},
    {"arith.minsi", "minimum", kPrimary},
    {"math.absf", "abs", kPrimary},
    {"math.absi", "std::abs", kPrimary},
    {"math.ceil", "ceil", kPrimary},
    {"math.copysign", "copy_sign", kPrimary},
    {"math.floor", "floor", kPrimary},
    {"math.fma", "fma", kPrimary},
    {"math.powf", "pow", kPrimary},
    {"math.roundeven", "round_even", kPrimary},
    {"math.sqrt", "sqrt", kPrimary},
    {"math.trunc", "trunc", kPrimary},
};

const Operator *findOperator(StringRef name) {
  for (const Operator &entry : kOperators)
    if (name == entry.name)
      return &entry;
  return nullptr;
}

struct IntegerComparison {
  arith::CmpIPredicate predicate;
  const char *text;
  bool isUnsigned;
};

constexpr IntegerComparison kIntegerComparisons[] = {
    {arith::CmpIPredicate::eq, "==", false},  {arith::CmpIPredicate::ne, "!=", false},
    {arith::CmpIPredicate::slt, "<", false},  {arith::CmpIPredicate::ult, "<", true},
    {arith::CmpIPredicate::sle, "<=", false}, {arith::CmpIPredicate::ule, "<=", true},
    {arith::CmpIPredicate::sgt, ">", false},  {arith::CmpIPredicate::ugt, ">", true},
    {arith::CmpIPredicate::sge, ">=", false}, {arith::CmpIPredicate::uge, ">=", true},
};

struct FloatComparison {
  arith::CmpFPredicate predicate;
  const char *text;
  bool isComplement; // of that ordered comparison
};

/// Those that take one comparison.
constexpr FloatComparison kFloatComparisons[] = {
    {arith::CmpFPredicate::OEQ, "==", false}, {arith::CmpFPredicate::UNE, "!=", false},
    {arith::CmpFPredicate::OGT, ">", false},  {arith::CmpFPredicate::UGT, "<=", true},
    {arith::CmpFPredicate::OGE, ">=", false}, {arith::CmpFPredicate::UGE, "<", true},
    {arith::CmpFPredicate::OLT, "<", false},  {arith::CmpFPredicate::ULT, ">=", true},
    {arith::CmpFPredicate::OLE, "<=", false}, {arith::CmpFPredicate::ULE, ">", true},
};

template <typename Row, size_t count, typename Predicate>
const Row &rowOf(const Row (&rows)[count], Predicate predicate) {
  for (const Row &row : rows)
    if (row.predicate == predicate)
      return row;
  internalError("a comparison of floats has no text"); // of integers all have one
}

/// Whether nobody reads the rounded value but memory, which rounds what it is given.
bool isOnlyStored(Operation &rounding) {
  return llvm::all_of(rounding.getUsers(), [](Operation *user) {
    return isa<kernel::StoreOp>(user) || (isa<arith::ExtFOp>(user) && user->use_empty());
  });
}

} // namespace

static Type elementOf(Value buffer) {
  return cast<kernel::BufferType>(buffer.getType()).getElement();
}

bool trainc::storesBytes(kernel::FunctionOp function) {
  return function
      .walk([](kernel::StoreOp store) {
        const ElementType &type = elementTypeOf(elementOf(store.getBuffer()));
        const bool isByte = type.bytes == 1 && type.scalarName != "bool";
        return isByte ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

ExpressionPrinter::ExpressionPrinter(const LoopNest &nest, SourceWriter &writer,
                                     const KernelNames &kernel)
    : names(kernel.locals), nest(nest), writer(writer), indices(kernel.indices),
      buffers(kernel.buffers) {
  kernel::FunctionOp(nest.function).walk([&](arith::TruncFOp rounding) {
    storesNarrow |= isNarrowFloat(rounding.getType());
  });
  storesNarrow |= storesBytes(nest.function);
}

std::string ExpressionPrinter::text(Value value) { return operand(value, 0); }

std::string ExpressionPrinter::operand(Value value, int minimum) {
  const Text &text = texts[value];
  return text.precedence < minimum ? "(" + text.text + ")" : text.text;
}

ExpressionPrinter::Text ExpressionPrinter::constant(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    bool negative = number.getValue().isNegative() && !number.getValue().isNaN();
    return {literal(number), negative ? kUnary : kPrimary};
  }
  auto number = cast<IntegerAttr>(value);
  if (number.getType().isSignlessInteger(1))
    return {number.getValue().isZero() ? "false" : "true", kPrimary};
  return {integerLiteral(number.getInt()), number.getInt() < 0 ? kUnary : kPrimary};
}

/// Element of a buffer at the current point, as text between brackets.
std::string ExpressionPrinter::address(unsigned argument) {
  std::string sum;
  auto add = [&](const std::string &term, bool negative) {
    if (sum.empty())
      sum = (negative ? "-" : "") + term;
    else
      sum += (negative ? " - " : " + ") + term;
  };
  for (auto [d, stride] : llvm::enumerate(nest.strides[argument])) {
    if (stride == 0)
      continue;
    bool compound = StringRef(indices[d]).contains(' ');
    int64_t factor = std::abs(stride);
    if (factor == 1)
      add(compound && stride < 0 ? "(" + indices[d] + ")" : indices[d], stride < 0);
    else
      add((compound ? "(" + indices[d] + ")" : indices[d]) + " * " + std::to_string(factor),
          stride < 0);
  }
  int64_t offset = nest.offsets[argument];
  if (offset != 0)
    add(std::to_string(std::abs(offset)), offset < 0);
  return sum.empty() ? "0" : sum;
}

/// `at`, moved by the load's index.
std::string ExpressionPrinter::indexed(kernel::LoadOp load, const std::string &at) {
  int64_t stride = static_cast<int64_t>(load.getIndexStride());
  std::string moved = operand(load.getIndex(), std::abs(stride) == 1 ? kAdd : kMultiply);
  if (std::abs(stride) != 1)
    moved += " * " + std::to_string(std::abs(stride));
  if (stride < 0)
    moved = "-(" + moved + ")";
  bool negative = at.front() == '-';
  return at == "0" ? moved : moved + (negative ? " - " + at.substr(1) : " + " + at);
}

std::string ExpressionPrinter::element(Operation *access) {
  if (auto known = elements.find(access); known != elements.end())
    return known->second;
  unsigned argument = argumentOf(access);
  std::string at = address(argument);
  auto load = dyn_cast<kernel::LoadOp>(access);
  return buffers[argument] + "[" + (load && load.getIndex() ? indexed(load, at) : at) + "]";
}

/// A number that constants keep between those of 32 bits, or no number.
static bool isWithinInt32(Value number) {
  constexpr double most = 2147483520; // of f32
  auto constant = [](Operation *op) -> std::optional<double> {
    for (Value operand : op->getOperands())
      if (auto of = operand.getDefiningOp<arith::ConstantOp>())
        if (auto value = dyn_cast<FloatAttr>(of.getValue()))
          return value.getValueAsDouble();
    return std::nullopt;
  };
  auto above = number.getDefiningOp<arith::MaximumFOp>();
  if (!above || !(std::abs(constant(above).value_or(INFINITY)) <= most))
    return false;
  return llvm::any_of(above->getOperands(), [&](Value operand) {
    auto below = operand.getDefiningOp<arith::MinimumFOp>();
    return below && constant(below).value_or(INFINITY) <= most;
  });
}

/// Whether it comes from memory that has it in so many bits, or fewer.
static bool fitsInt32(Value integer) {
  Operation *op = integer.getDefiningOp();
  if (auto load = dyn_cast_or_null<kernel::LoadOp>(op)) {
    const Type element = elementOf(load.getBuffer());
    return element.isIntOrIndex() && element.getIntOrFloatBitWidth() < 32;
  }
  if (!isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(op))
    return false;
  const unsigned width = op->getOperand(0).getType().getIntOrFloatBitWidth();
  return width > 1 && (width < 32 || (width == 32 && isa<arith::ExtSIOp>(op)));
}

std::string ExpressionPrinter::loadText(kernel::LoadOp load) {
  std::string element = this->element(load);
  bool isBool = load.getType().isSignlessInteger(1);
  if (elementOf(load.getBuffer()).isUnsignedInteger())
    element = "static_cast<int64_t>(" + element + ")";
  // In the middle of an expression; a statement converts it by itself.
  if (elements.contains(load) && isNarrowFloat(elementOf(load.getBuffer())))
    element = "static_cast<" + scalarType(load.getType()).str() + ">(" + element + ")";
  if (load.getPredicate()) {
    if (isBool)
      element += " != 0";
    return operand(load.getPredicate(), kSelect + 1) + " ? " + element + " : " +
           elementTypeOf(load.getType()).zero.str();
  }
  return isBool ? element + " != 0" : element;
}

/// Compares in int where one side surely fits: 64-bit lanes would halve the vector width.
ExpressionPrinter::Text ExpressionPrinter::compareIntegers(Operation &op) {
  auto compare = cast<arith::CmpIOp>(op);
  Value a = compare.getLhs(), b = compare.getRhs();
  const IntegerComparison &comparison = rowOf(kIntegerComparisons, compare.getPredicate());
  auto side = [&](Value value, Value other) -> std::string {
    if (comparison.isUnsigned && !value.getType().isInteger(1)) // false is less than true
      return "static_cast<u" + scalarType(value.getType()).str() + ">(" + text(value) + ")";
    if (nest.narrowInteger(other) && !nest.narrowInteger(value))
      return "narrow(" + text(value) + ")";
    return operand(value, kCompare + 1);
  };
  return {side(a, b) + " " + comparison.text + " " + side(b, a), kCompare};
}

/// Whether two ints make an integer that no int holds.
bool ExpressionPrinter::leavesInt(Operation &op) const {
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) &&
         !nest.narrowInteger(op.getResult(0)) && nest.narrowInteger(op.getOperand(0)) &&
         nest.narrowInteger(op.getOperand(1));
}

/// Whether C++'s division by this integer may end the program.
static bool mayTrap(Value divisor) {
  auto constant = divisor.getDefiningOp<arith::ConstantOp>();
  return !constant || llvm::is_contained({0, -1}, cast<IntegerAttr>(constant.getValue()).getInt());
}

ExpressionPrinter::Text ExpressionPrinter::compareFloats(arith::CmpFOp compare) {
  std::string a = operand(compare.getLhs(), kCompare + 1);
  std::string b = operand(compare.getRhs(), kCompare + 1);
  const std::string differ = "(" + a + " < " + b + ") | (" + a + " > " + b + ")";
  switch (compare.getPredicate()) {
  case arith::CmpFPredicate::UNO:
    return {"(" + a + " != " + a + ") | (" + b + " != " + b + ")", kBitwise};
  case arith::CmpFPredicate::ORD:
    return {"(" + a + " == " + a + ") & (" + b + " == " + b + ")", kBitwise};
  case arith::CmpFPredicate::ONE:
    return {differ, kBitwise};
  case arith::CmpFPredicate::UEQ:
    return {"!(" + differ + ")", kBitwise};
  default:
    break;
  }
  const FloatComparison &comparison = rowOf(kFloatComparisons, compare.getPredicate());
  std::string text = a + " " + comparison.text + " " + b;
  return comparison.isComplement ? Text{"!(" + text + ")", kUnary} : Text{text, kCompare};
}

ExpressionPrinter::Text ExpressionPrinter::selection(arith::SelectOp select) {
  if (storesNarrow &&
      (isa<FloatType>(select.getType()) || scalarType(select.getType()) == "int64_t") &&
      nest.dependence(select.getCondition().getDefiningOp()) == 0) {
    auto side = [&](Value value) {
      const std::string of = text(value);
      return isa<FloatType>(select.getType()) ? of : "static_cast<int64_t>(" + of + ")";
    };
    return {"trainc::chosen(" + text(select.getCondition()) + ", " + side(select.getTrueValue()) +
                ", " + side(select.getFalseValue()) + ")",
            kPrimary};
  }
  return {operand(select.getCondition(), kSelect + 1) + " ? " +
              operand(select.getTrueValue(), kSelect + 1) + " : " +
              operand(select.getFalseValue(), kSelect),
          kSelect};
}

ExpressionPrinter::Text ExpressionPrinter::conversion(Operation &op) {
  // A narrow float outside of memory is a rounded one of f32.
  if (isa<arith::TruncFOp>(op) && isNarrowFloat(op.getResult(0).getType())) {
    StringRef stored = elementTypeOf(op.getResult(0).getType()).storedName;
    return isOnlyStored(op)
               ? Text{text(op.getOperand(0)), 0}
               : Text{(stored + "::nearest(" + text(op.getOperand(0)) + ")").str(), kPrimary};
  }
  if (isa<arith::ExtFOp>(op) && isNarrowFloat(op.getOperand(0).getType()) &&
      op.getResult(0).getType() == Float32Type::get(op.getContext()))
    return texts[op.getOperand(0)];
  std::string inner = text(op.getOperand(0));
  bool signExtended =
      isa<arith::ExtSIOp, arith::SIToFPOp>(op) && op.getOperand(0).getType().isSignlessInteger(1);
  if (isa<arith::FPToSIOp>(op)) {
    StringRef to = scalarType(op.getResult(0).getType());
    if (isWithinInt32(op.getOperand(0))) // which vectors convert everywhere
      return {("static_cast<" + to + ">(truncated<int32_t>(" + inner + "))").str(), kPrimary};
    return {("truncated<" + to + ">(" + inner + ")").str(), kPrimary};
  }
  if (isa<arith::SIToFPOp>(op) && fitsInt32(op.getOperand(0))) // which vectors convert everywhere
    inner = "static_cast<int32_t>(" + inner + ")";
  if (isa<arith::TruncIOp>(op) && op.getResult(0).getType().isSignlessInteger(1))
    return {"(" + inner + " & 1) != 0", kCompare};
  return {(signExtended ? "-" : "") +
              ("static_cast<" + scalarType(op.getResult(0).getType())).str() + ">(" + inner + ")",
          signExtended ? kUnary : kPrimary};
}

ExpressionPrinter::Text ExpressionPrinter::operation(Operation &op, const std::string &sign,
                                                     int precedence) {
  if (isa<arith::AddIOp>(op)) // j + -3 reads as j - 3
    if (auto constant = op.getOperand(1).getDefiningOp<arith::ConstantOp>()) {
      int64_t value = cast<IntegerAttr>(constant.getValue()).getInt();
      if (value < 0 && value != INT64_MIN)
        return {operand(op.getOperand(0), kAdd) + " - " + std::to_string(-value), kAdd};
    }
  if (precedence == kUnary)
    return {sign + operand(op.getOperand(0), kUnary + 1), kUnary};
  if (precedence != kPrimary) {
    bool boolean = op.getResult(0).getType().isSignlessInteger(1);
    // Addition of a parenthesised sum keeps the order of rounding visible.
    int needed = precedence == kBitwise ? kPrimary : precedence;
    if (boolean && isa<arith::XOrIOp>(op))
      if (auto one = op.getOperand(1).getDefiningOp<arith::ConstantOp>())
        if (cast<IntegerAttr>(one.getValue()).getValue().isOne())
          return {"!" + operand(op.getOperand(0), kUnary + 1), kUnary};
    return {(leavesInt(op) ? "static_cast<int64_t>(" + text(op.getOperand(0)) + ")"
                           : operand(op.getOperand(0), needed)) +
                " " + sign + " " + operand(op.getOperand(1), needed + (precedence != kBitwise)),
            precedence};
  }
  std::string call = sign;
  if (isa<arith::MaxSIOp, arith::MinSIOp>(op)) // literals and indices of loops are int
    call += "<" + scalarType(op.getResult(0).getType()).str() + ">";
  call += "(";
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    call += (i ? ", " : "") + text(op.getOperand(i));
  return {call + ")", kPrimary};
}

ExpressionPrinter::Text ExpressionPrinter::expression(Operation &op) {
  if (auto value = dyn_cast<arith::ConstantOp>(op))
    return constant(value.getValue());
  if (auto load = dyn_cast<kernel::LoadOp>(op))
    return {loadText(load), load.getPredicate()                   ? kSelect
                            : load.getType().isSignlessInteger(1) ? kCompare
                                                                  : kPrimary};
  if (auto index = dyn_cast<kernel::IndexOp>(op)) {
    StringRef text = indices[index.getDimension()];
    return {text.str(), text.contains(' ') ? kAdd : kPrimary};
  }
  if (auto random = dyn_cast<kernel::RandomBitsOp>(op))
    return {"random_bits<" + std::to_string(random.getBits()) + ">(" + text(random.getKey()) +
                ", " + std::to_string(random.getStream()) + ", " + text(random.getElement()) + ")",
            kPrimary};
  if (isa<arith::CmpIOp>(op))
    return compareIntegers(op);
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return compareFloats(compare);
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return selection(select);
  if (isa<arith::SIToFPOp, arith::FPToSIOp, arith::UIToFPOp, arith::ExtFOp, arith::TruncFOp,
          arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op))
    return conversion(op);
  if (isa<math::RsqrtOp>(op))
    return {elementTypeOf(op.getResult(0).getType()).one.str() + " / sqrt(" +
                text(op.getOperand(0)) + ")",
            kMultiply};
  if (const ElementaryFunction *function = findElementaryFunction(op.getName().getStringRef()))
    return {function->name.str() + "(" + text(op.getOperand(0)) + ")", kPrimary};
  if (isa<arith::DivSIOp, arith::RemSIOp>(op) && mayTrap(op.getOperand(1)))
    return {(isa<arith::DivSIOp>(op) ? "quotient(" : "remainder(") + text(op.getOperand(0)) + ", " +
                text(op.getOperand(1)) + ")",
            kPrimary};
  if (const Operator *found = findOperator(op.getName().getStringRef()))
    return operation(op, found->text, found->precedence);
  op.emitError("the C++ emitter has no text for '") << op.getName() << "'";
  return {"0", kPrimary};
}

bool ExpressionPrinter::printsInline(Operation &op, const Text &text) {
  if (isa<arith::ConstantOp>(op))
    return true;
  if (isa<kernel::IndexOp>(op))
    return text.precedence == kPrimary || op.hasOneUse();
  // A load stays a statement: its value is that before any later store. The lane of a vector is
  // a value already.
  if (isa<kernel::LoadOp>(op))
    return elements.contains(&op);
  if (!op.hasOneUse())
    return false;
  Operation *user = *op.getUsers().begin();
  // Moving into an inner loop would repeat the work there, past an end of region lose the place.
  return user->getBlock() == op.getBlock() && nest.innermost(user) == nest.innermost(&op) &&
         columns(text.text) <= kInlineLength;
}

std::string ExpressionPrinter::temporaryName(Operation &op) {
  if (auto load = dyn_cast<kernel::LoadOp>(op)) {
    return names.unique(buffers[argumentOf(load)] + "_value");
  }
  if (std::string word = valueWord(op.getLoc()); !word.empty())
    return names.value(sanitize(word));
  for (Operation *user : op.getUsers())
    if (auto store = dyn_cast<kernel::StoreOp>(user))
      return names.unique(buffers[cast<BlockArgument>(store.getBuffer()).getArgNumber()] +
                          "_value");
  StringRef name = op.getName().stripDialect();
  return names.unique(llvm::StringSwitch<StringRef>(name)
                          .Cases("addf", "addi", "sum")
                          .Cases("subf", "subi", "difference")
                          .Cases("mulf", "muli", "product")
                          .Cases("divf", "divsi", "quotient")
                          .Cases("cmpf", "cmpi", "andi", "ori", "xori", "condition")
                          .Cases("maximumf", "maxsi", "largest")
                          .Cases("minimumf", "minsi", "smallest")
                          .Case("select", "chosen")
                          .Case("random_bits", "random")
                          .Cases("remf", "remsi", "remainder")
                          .Case("negf", "negative")
                          .Case("sqrt", "root")
                          .Case("rsqrt", "inverse_root")
                          .Cases("sitofp", "fptosi", "extf", "truncf", "converted")
                          .Cases("extsi", "extui", "trunci", "uitofp", "converted")
                          .Default((name + "_x").str()));
}

void ExpressionPrinter::print(Operation &op) {
  if (auto store = dyn_cast<kernel::StoreOp>(op)) {
    std::string value = text(store.getValue());
    if (elementOf(store.getBuffer()).isUnsignedInteger())
      value = "static_cast<" + elementType(elementOf(store.getBuffer())).str() + ">(" + value + ")";
    writer.line(element(store) + " = " + value + ";");
    return;
  }
  if (op.getNumResults() != 1)
    return;
  Value result = op.getResult(0);
  if (isa<arith::ExtFOp>(op) && result.use_empty())
    return;
  Text value = expression(op);
  if (printsInline(op, value)) {
    texts[result] = value;
    return;
  }
  std::string name = temporaryName(op);
  StringRef type = nest.narrowInteger(result) ? "int" : scalarType(result.getType());
  StringRef unused = result.use_empty() ? "[[maybe_unused]] " : "";
  writer.line(unused + "const " + type + " " + name + " = " + value.text + ";");
  setText(result, name);
}
