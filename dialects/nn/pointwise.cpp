// SPDX-License-Identifier: Apache-2.0
//
// Import from ONNX of every pointwise record that names an ONNX operator: the
// list of operations is the generated one, none is named here.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/scalar_code.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace trainc::nn {

// Exporters mix widths only through constants (a double scalar beside f32) and
// through integer shape arithmetic. The reader refuses other mixtures, by the table of what ONNX
// declares.
static void harmonizeTypes(OnnxNode &node, MutableArrayRef<Value> operands, unsigned firstValue) {
  Type target;
  bool targetIsConstant = true;
  for (unsigned i = firstValue; i < operands.size(); ++i) {
    Type type = tensorType(operands[i]).getElementType();
    bool isConstant = static_cast<bool>(node.constant(i));
    if (!target || (targetIsConstant && !isConstant)) {
      target = type;
      targetIsConstant = isConstant;
    }
  }
  for (Value &operand : operands.drop_front(firstValue))
    operand = node.builder().cast(operand, target);
}

static LogicalResult broadcastOperands(OnnxNode &node, MutableArrayRef<Value> operands) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    auto joined = broadcastShapes(shape, tensorType(operand).getShape());
    if (!joined)
      return node.error(
          "shapes " +
          llvm::join(llvm::map_range(operands,
                                     [](Value value) {
                                       return "[" +
                                              llvm::join(
                                                  llvm::map_range(tensorType(value).getShape(),
                                                                  [](int64_t size) {
                                                                    return std::to_string(size);
                                                                  }),
                                                  ", ") +
                                              "]";
                                     }),
                     " and ") +
          " do not broadcast");
    shape = *joined;
  }
  return node.builder().unify(operands);
}

static StringRef wordFor(Type element) {
  return isa<FloatType>(element) ? "real numbers" : element.isInteger(1) ? "bools" : "integers";
}

template <typename Op> static OnnxResults importPointwise(OnnxNode &node) {
  unsigned count = Op::operandNames().size();
  SmallVector<Value> operands;
  for (unsigned i = 0; i < count; ++i)
    operands.push_back(node.input(i));
  unsigned firstValue = count == 3 ? 1 : 0; // select has a condition before its values
  harmonizeTypes(node, operands, firstValue);
  SmallVector<Type> types;
  if (failed(broadcastOperands(node, operands)) ||
      failed(Op::inferReturnTypes(node.builder().op().getContext(), std::nullopt, operands, nullptr,
                                  nullptr, {}, types)))
    return failure();
  Type element = tensorType(operands.back()).getElementType();
  if (!isa<FloatType>(element) && count < 3 &&
      !hasScalarCode(Op::getOperationName().drop_front(StringRef("nn.").size()), count,
                     scalarTypeOf(element)))
    return node.error("computes on real numbers, found " + wordFor(element),
                      "insert a Cast before the node");
  OperationState state(node.builder().location(), Op::getOperationName());
  state.addOperands(operands);
  state.addTypes(types);
  return SmallVector<Value>{node.builder().op().create(state)->getResult(0)};
}

// What models learn in an input of the operator.
using WeightFunction = OnnxWeight (*)(unsigned input, llvm::ArrayRef<int64_t> shape);
template <typename Op> constexpr WeightFunction weightsOf = nullptr;

// One number for each channel or feature: [768], [1, 1, 768], [64, 1, 1].
static bool liesAlongOneAxis(llvm::ArrayRef<int64_t> shape) {
  return llvm::count_if(shape, [](int64_t size) { return size > 1; }) == 1;
}

template <>
constexpr WeightFunction weightsOf<AddOp> = [](unsigned, llvm::ArrayRef<int64_t> shape) {
  bool isTable = !shape.empty() && shape.back() > 1;
  return isTable || liesAlongOneAxis(shape) ? OnnxWeight::bias : OnnxWeight::none;
};

// Tables of angles and masks have more axes.
template <>
constexpr WeightFunction weightsOf<MulOp> = [](unsigned, llvm::ArrayRef<int64_t> shape) {
  return liesAlongOneAxis(shape) ? OnnxWeight::scale : OnnxWeight::none;
};

static void declareGradient(OnnxRegistration registration, ArrayRef<StringRef> expressions) {
  SmallVector<unsigned> operands;
  for (auto [operand, expression] : llvm::enumerate(expressions))
    if (expression != "none")
      operands.push_back(operand);
  if (operands.size() < expressions.size())
    registration.gradientOf(operands);
}

template <typename Op> static void registerRecord() {
  if constexpr (requires { Op::onnxNames(); })
    for (StringRef entry : Op::onnxNames()) {
      auto [name, since] = entry.split(':');
      int64_t version;
      if (!name.empty() && !since.getAsInteger(10, version))
        declareGradient(OnnxRegistration(name, version, importPointwise<Op>, weightsOf<Op>),
                        Op::gradientExpressions());
    }
}

template <typename... Ops> static bool registerRecords() {
  (registerRecord<Ops>(), ...);
  return true;
}

static const bool registered = registerRecords<
#define GET_OP_LIST
#include "dialects/nn/nn_ops.cpp.inc"
    >();

} // namespace trainc::nn
