// SPDX-License-Identifier: Apache-2.0
//
// Recursive-descent parser of the pointwise expressions, and their construction
// as nn operations.
#include "dialects/nn/expression.h"
#include "dialects/errors/internal_error.h"
#include "llvm/ADT/StringExtras.h"
#include <mutex>

using namespace mlir;

namespace trainc::nn {
namespace {

using Node = std::unique_ptr<Expression>;

class Parser {
public:
  explicit Parser(StringRef text) : text(text), rest(text) {}

  Node whole() {
    Node result = expression();
    if (!rest.ltrim().empty())
      fail("an operator");
    return result;
  }

private:
  [[noreturn]] void fail(StringRef expected) {
    internalError(llvm::Twine("pointwise expression '") + text + "': expected " + expected +
                  " before '" + rest + "'");
  }
  bool take(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  void need(StringRef token) {
    if (!take(token))
      fail(token);
  }
  static Node call(StringRef name, Node a, Node b = nullptr) {
    auto node = std::make_unique<Expression>();
    node->kind = Expression::Kind::call;
    node->name = name.str();
    node->operands.push_back(std::move(a));
    if (b)
      node->operands.push_back(std::move(b));
    return node;
  }

  Node expression() {
    static const std::pair<StringRef, StringRef> comparisons[] = {{"<=", "less_or_equal"},
                                                                  {">=", "greater_or_equal"},
                                                                  {"==", "equal"},
                                                                  {"<", "less"},
                                                                  {">", "greater"}};
    Node left = sum();
    for (auto [token, name] : comparisons)
      if (take(token))
        return call(name, std::move(left), sum());
    return left;
  }

  Node sum() {
    Node left = product();
    while (true) {
      if (take("+"))
        left = call("add", std::move(left), product());
      else if (take("-"))
        left = call("sub", std::move(left), product());
      else
        return left;
    }
  }

  Node product() {
    Node left = unary();
    while (true) {
      if (take("*"))
        left = call("mul", std::move(left), unary());
      else if (take("/"))
        left = call("div", std::move(left), unary());
      else
        return left;
    }
  }

  Node unary() {
    if (take("-")) {
      Node operand = unary();
      if (operand->kind != Expression::Kind::number)
        return call("neg", std::move(operand));
      operand->number = -operand->number;
      return operand;
    }
    if (take("(")) {
      Node inner = expression();
      need(")");
      return inner;
    }
    rest = rest.ltrim();
    if (!rest.empty() && (llvm::isDigit(rest.front()) || rest.front() == '.'))
      return number();
    return nameOrCall();
  }

  Node number() {
    StringRef digits = rest.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
    auto node = std::make_unique<Expression>();
    node->kind = Expression::Kind::number;
    if (digits.getAsDouble(node->number))
      fail("a number");
    rest = rest.drop_front(digits.size());
    return node;
  }

  Node nameOrCall() {
    StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      fail("a name");
    rest = rest.drop_front(name.size());
    auto node = std::make_unique<Expression>();
    node->kind = Expression::Kind::name;
    node->name = name.str();
    if (!take("("))
      return node;
    node->kind = Expression::Kind::call;
    do {
      node->operands.push_back(expression());
    } while (take(","));
    need(")");
    return node;
  }

  StringRef text, rest;
};

/// Builds the tree; numbers wait for the type of a neighbour.
class TensorBuilder {
public:
  TensorBuilder(Builder &builder, const llvm::StringMap<Value> &names)
      : builder(builder), names(names) {
    // Where all neighbours are numbers, the result's own type serves.
    for (StringRef name : {"dy", "y"})
      if (Value value = names.lookup(name); value && !fallback)
        fallback = value.getType();
    for (const auto &entry : names)
      if (!fallback && !tensorType(entry.second).getElementType().isInteger(1))
        fallback = entry.second.getType();
  }

  Value build(const Expression &expression, Type type) {
    switch (expression.kind) {
    case Expression::Kind::number:
      return builder.constant(expression.number, type ? type : fallback);
    case Expression::Kind::name: {
      Value value = names.lookup(expression.name);
      if (!value)
        internalError(llvm::Twine("pointwise expression names unknown operand '") +
                      expression.name + "'");
      return value;
    }
    case Expression::Kind::call:
      return call(expression, type);
    }
    internalError("a pointwise expression is of an unknown kind");
  }

private:
  Value call(const Expression &expression, Type type) {
    bool isSelect = expression.name == "select";
    size_t count = expression.operands.size();
    SmallVector<Value> operands(count);
    Type neighbour;
    for (size_t i = 0; i < count; ++i) {
      if (expression.operands[i]->kind == Expression::Kind::number)
        continue;
      operands[i] = build(*expression.operands[i], isSelect && i > 0 ? type : Type());
      if (!(isSelect && i == 0) && !neighbour)
        neighbour = operands[i].getType();
    }
    if (!neighbour)
      neighbour = type;
    for (size_t i = 0; i < count; ++i)
      if (!operands[i])
        operands[i] = build(*expression.operands[i], neighbour);
    return create(expression.name, operands);
  }

  Value create(StringRef mnemonic, ArrayRef<Value> operands) {
    MLIRContext *context = builder.op().getContext();
    OperationName name(("nn." + mnemonic).str(), context);
    auto *inference = name.getInterface<InferTypeOpInterface>();
    SmallVector<Type> types;
    if (!inference ||
        failed(inference->inferReturnTypes(context, builder.location(), operands,
                                           DictionaryAttr::get(context), nullptr, {}, types)))
      internalError(llvm::Twine("pointwise expression calls '") + mnemonic +
                    "', which is not a pointwise operation or does not take the operands");
    OperationState state(builder.location(), name);
    state.addOperands(operands);
    state.addTypes(types);
    return builder.op().create(state)->getResult(0);
  }

  Builder &builder;
  const llvm::StringMap<Value> &names;
  Type fallback;
};

} // namespace

const Expression &parseExpression(StringRef text) {
  static std::mutex mutex;
  static llvm::StringMap<Node> cache;
  std::lock_guard<std::mutex> lock(mutex);
  Node &entry = cache[text];
  if (!entry)
    entry = Parser(text).whole();
  return *entry;
}

Value buildExpression(Builder &builder, const Expression &expression,
                      const llvm::StringMap<Value> &names) {
  return TensorBuilder(builder, names).build(expression, Type());
}

LogicalResult buildPointwiseGradient(Operation *op, Builder &builder,
                                     ArrayRef<Value> resultGradients,
                                     const llvm::SmallBitVector &needed,
                                     SmallVectorImpl<Value> &operandGradients) {
  auto pointwise = cast<PointwiseOpInterface>(op);
  llvm::StringMap<Value> names;
  for (auto [name, operand] : llvm::zip_equal(pointwise.operandNames(), op->getOperands()))
    names[name] = operand;
  names["y"] = op->getResult(0);
  names["dy"] = resultGradients.front();
  ArrayRef<StringRef> gradients = pointwise.gradientExpressions();
  operandGradients.assign(op->getNumOperands(), Value());
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (needed[i] && gradients[i] != "none")
      operandGradients[i] = buildExpression(builder, parseExpression(gradients[i]), names);
  return success();
}

} // namespace trainc::nn
