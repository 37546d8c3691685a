// SPDX-License-Identifier: Apache-2.0
//
// A function for each kind of operation. Pointwise operations whose operator means the same are
// a table.
#include "compiler/onnx/gradient_graph/operators.h"
#include "dialects/errors/internal_error.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>
#include <numeric>

using namespace llvm;
using namespace mlir;

namespace trainc {
namespace {

using Sizes = SmallVector<int64_t>;

Sizes sizesOf(Value value) { return Sizes(nn::tensorType(value).getShape()); }

const StringMap<StringRef> &pointwiseOperators() {
  static const StringMap<StringRef> operators = {
      {"add", "Add"},
      {"sub", "Sub"},
      {"mul", "Mul"},
      {"div", "Div"},
      {"neg", "Neg"},
      {"abs", "Abs"},
      {"exp", "Exp"},
      {"log", "Log"},
      {"sqrt", "Sqrt"},
      {"tanh", "Tanh"},
      {"erf", "Erf"},
      {"sin", "Sin"},
      {"cos", "Cos"},
      {"tan", "Tan"},
      {"atan", "Atan"},
      {"asin", "Asin"},
      {"acos", "Acos"},
      {"sinh", "Sinh"},
      {"cosh", "Cosh"},
      {"asinh", "Asinh"},
      {"acosh", "Acosh"},
      {"atanh", "Atanh"},
      {"pow", "Pow"},
      {"minimum", "Min"},
      {"maximum", "Max"},
      {"select", "Where"},
      {"floor", "Floor"},
      {"ceil", "Ceil"},
      {"round", "Round"},
      {"detach", "Identity"},
      {"equal", "Equal"},
      {"less", "Less"},
      {"less_or_equal", "LessOrEqual"},
      {"greater", "Greater"},
      {"greater_or_equal", "GreaterOrEqual"},
      {"and", "And"},
      {"or", "Or"},
      {"xor", "Xor"},
      {"not", "Not"},
      {"bit_and", "BitwiseAnd"},
      {"bit_or", "BitwiseOr"},
      {"bit_xor", "BitwiseXor"},
      {"bit_not", "BitwiseNot"},
      {"is_nan", "IsNaN"},
      {"sign", "Sign"},
      {"reciprocal", "Reciprocal"},
      {"sigmoid", "Sigmoid"},
      {"relu", "Relu"},
      {"softplus", "Softplus"},
      {"softsign", "Softsign"},
      {"remainder", "Mod"},
  };
  return operators;
}

/// The operator that a pointwise operation is; empty where it is none.
StringRef pointwiseOperator(Operation *op) {
  return isa<nn::PointwiseOpInterface>(op)
             ? pointwiseOperators().lookup(op->getName().stripDialect())
             : StringRef();
}

void writePointwise(GraphWriter &w, Operation *op) {
  Value result = op->getResult(0);
  StringRef name = pointwiseOperator(op);
  onnx::NodeProto &node = w.node(name, w.spread(op->getOperands(), sizesOf(result)), result);
  if (name == "Mod")
    setInteger(node, "fmod", 1); // the sign of the dividend
}

// ---- elements in other places

void write(GraphWriter &w, nn::ReshapeOp op) {
  w.node("Reshape", {w.whole(op.getX()), w.integers(sizesOf(op.getResult()))}, op.getResult());
}

void write(GraphWriter &w, nn::TransposeOp op) {
  setIntegers(w.node("Transpose", {w.whole(op.getX())}, op.getResult()), "perm",
              op.getPermutation());
}

void writePart(GraphWriter &w, Value x, Value result, ArrayRef<int64_t> starts,
               ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  Sizes begins, ends, axes, steps, whole = sizesOf(x);
  for (size_t d = 0; d < starts.size(); ++d) {
    if (starts[d] == 0 && sizes[d] == whole[d] && strides[d] == 1)
      continue;
    int64_t end = starts[d] + (sizes[d] - 1) * strides[d] + (strides[d] > 0 ? 1 : -1);
    axes.push_back(static_cast<int64_t>(d));
    begins.push_back(starts[d]);
    ends.push_back(end < 0 ? std::numeric_limits<int64_t>::min() : end); // -1 is the last one
    steps.push_back(strides[d]);
  }
  std::vector<std::string> inputs{w.whole(x)};
  if (axes.empty()) {
    w.node("Identity", inputs, result);
    return;
  }
  for (const Sizes &numbers : {begins, ends, axes, steps})
    inputs.push_back(w.integers(numbers));
  w.node("Slice", inputs, result);
}

void write(GraphWriter &w, nn::SliceOp op) {
  writePart(w, op.getX(), op.getResult(), op.getStarts(), op.getSizes(), op.getStrides());
}

void write(GraphWriter &w, nn::ReverseOp op) {
  Sizes sizes = sizesOf(op.getX()), starts(sizes.size(), 0), strides(sizes.size(), 1);
  for (int64_t d : op.getDimensions()) {
    starts[d] = sizes[d] - 1;
    strides[d] = -1;
  }
  writePart(w, op.getX(), op.getResult(), starts, sizes, strides);
}

void write(GraphWriter &w, nn::PadOp op) { // without zeros in between: standard_form.cpp
  Sizes pads(op.getLow());
  pads.append(op.getHigh().begin(), op.getHigh().end());
  w.node("Pad", {w.whole(op.getX()), w.integers(pads)}, op.getResult());
}

void write(GraphWriter &w, nn::ConcatOp op) {
  std::vector<std::string> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(w.whole(input));
  setInteger(w.node("Concat", inputs, op.getResult()), "axis",
             static_cast<int64_t>(op.getDimension()));
}

void write(GraphWriter &w, nn::CastOp op) {
  setInteger(w.node("Cast", {w.whole(op.getX())}, op.getResult()), "to",
             onnxType(op.getResult().getType().getElementType()));
}

// ---- sums, products, tables

template <typename Op> void writeReduction(GraphWriter &w, StringRef name, Op op) {
  onnx::NodeProto &node =
      w.node(name, {w.whole(op.getX()), w.integers(op.getDimensions())}, op.getResult());
  setInteger(node, "keepdims", 0);
  setInteger(node, "noop_with_empty_axes", 1);
}

void write(GraphWriter &w, nn::ReduceSumOp op) { writeReduction(w, "ReduceSum", op); }
void write(GraphWriter &w, nn::ReduceMaxOp op) { writeReduction(w, "ReduceMax", op); }
void write(GraphWriter &w, nn::ReduceMinOp op) { writeReduction(w, "ReduceMin", op); }

void write(GraphWriter &w, nn::MatmulOp op) {
  Value result = op.getResult();
  Sizes order(nn::tensorType(result).getRank());
  std::iota(order.begin(), order.end(), 0);
  const bool isGemm = order.size() == 2;
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  auto factor = [&](Value x, bool isTransposed) {
    std::string name = w.whole(x);
    if (!isTransposed || isGemm)
      return name;
    name = w.part("Transpose", {name}, result);
    setIntegers(w.last(), "perm", order);
    return name;
  };
  std::string a = factor(op.getA(), op.getTransposeA()), b = factor(op.getB(), op.getTransposeB());
  if (!isGemm || (!op.getTransposeA() && !op.getTransposeB())) {
    w.node("MatMul", {a, b}, result);
    return;
  }
  onnx::NodeProto &node = w.node("Gemm", {a, b}, result);
  setInteger(node, "transA", op.getTransposeA() ? 1 : 0);
  setInteger(node, "transB", op.getTransposeB() ? 1 : 0);
}

void write(GraphWriter &w, nn::GatherOp op) {
  setInteger(w.node("Gather", {w.whole(op.getTable()), w.whole(op.getIndices())}, op.getResult()),
             "axis", 0);
}

void setSum(onnx::NodeProto &node) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name("reduction");
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s("add");
}

void write(GraphWriter &w, nn::ScatterAddOp op) {
  Sizes rows = sizesOf(op.getIndices());
  rows.push_back(1);
  std::string indices = w.whole(op.getIndices());
  if (!isIndexElement(nn::tensorType(op.getIndices()).getElementType())) {
    indices = w.part("Cast", {indices}, op.getResult());
    setInteger(w.last(), "to", onnx::TensorProto::INT64);
  }
  indices = w.reshaped(indices, rows, op.getResult());
  setSum(w.node("ScatterND", {w.whole(op.getTable()), indices, w.whole(op.getUpdates())},
                op.getResult()));
}

// ---- windows

template <typename Op> void setWindows(onnx::NodeProto &node, Op op, ArrayRef<int64_t> kernel) {
  setIntegers(node, "kernel_shape", kernel);
  setIntegers(node, "strides", op.getStrides());
  setIntegers(node, "dilations", op.getDilations());
  setIntegers(node, "pads", op.getPads());
}

void write(GraphWriter &w, nn::ConvolutionOp op) {
  onnx::NodeProto &node = w.node("Conv", {w.whole(op.getX()), w.whole(op.getW())}, op.getResult());
  setWindows(node, op, ArrayRef(sizesOf(op.getW())).drop_front(2));
  setInteger(node, "group", static_cast<int64_t>(op.getGroups()));
}

void write(GraphWriter &w, nn::ConvolutionInputGradientOp op) {
  onnx::NodeProto &node =
      w.node("ConvTranspose", {w.whole(op.getDy()), w.whole(op.getW())}, op.getResult());
  Sizes kernel = sizesOf(op.getW()), dy = sizesOf(op.getDy()), behind;
  const size_t space = op.getSizes().size();
  for (size_t d = 0; d < space; ++d) {
    int64_t reach = (kernel[d + 2] - 1) * op.getDilations()[d] + 1;
    int64_t reached = (dy[d + 2] - 1) * op.getStrides()[d] + reach;
    behind.push_back(op.getSizes()[d] + op.getPads()[d] + op.getPads()[d + space] - reached);
  }
  setWindows(node, op, ArrayRef(kernel).drop_front(2));
  setIntegers(node, "output_padding", behind);
  setInteger(node, "group", static_cast<int64_t>(op.getGroups()));
}

/// Where the largest element of each window is, among all of x.
template <typename Op> std::string largestPlaces(GraphWriter &w, Op op) {
  w.part("MaxPool", {w.whole(op.getX())}, op.getResult());
  setWindows(w.last(), op, op.getKernel());
  return w.secondOutput(w.last());
}

void write(GraphWriter &w, nn::MaxPoolOp op) {
  if (op.getX() == op.getValues()) {
    setWindows(w.node("MaxPool", {w.whole(op.getX())}, op.getResult()), op, op.getKernel());
    return;
  }
  std::string places = largestPlaces(w, op);
  int64_t count = nn::tensorType(op.getX()).getNumElements();
  std::string values = w.reshaped(w.whole(op.getValues()), {count}, op.getResult());
  setInteger(w.node("Gather", {values, places}, op.getResult()), "axis", 0);
}

void write(GraphWriter &w, nn::MaxPoolGradientOp op) {
  Value result = op.getResult();
  int64_t count = nn::tensorType(op.getX()).getNumElements();
  int64_t windows = nn::tensorType(op.getDy()).getNumElements();
  std::string places = w.reshaped(largestPlaces(w, op), {windows, 1}, result);
  std::string added = w.reshaped(w.whole(op.getDy()), {windows}, result);
  std::string zero = w.scalar(0, nn::tensorType(result).getElementType());
  std::string zeros = w.part("Expand", {zero, w.integers(count)}, result);
  std::string sums = w.part("ScatterND", {zeros, places, added}, result);
  setSum(w.last());
  w.node("Reshape", {sums, w.integers(sizesOf(result))}, result);
}

/// Calls the function of the operation's kind, if there is something to write to; false where there
/// is none. Constants and what is only repeated are written where something reads them.
bool dispatch(Operation *op, GraphWriter *w) {
  if (!pointwiseOperator(op).empty()) {
    if (w)
      writePointwise(*w, op);
    return true;
  }
  if (auto pad = dyn_cast<nn::PadOp>(op);
      pad && any_of(pad.getInterior(), [](int64_t each) { return each != 0; }))
    return false;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<nn::ConstantOp, nn::BroadcastOp, nn::IotaOp>([](auto) { return true; })
      .Case<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::ReverseOp, nn::PadOp, nn::ConcatOp,
            nn::CastOp, nn::ReduceSumOp, nn::ReduceMaxOp, nn::ReduceMinOp, nn::MatmulOp,
            nn::GatherOp, nn::ScatterAddOp, nn::ConvolutionOp, nn::ConvolutionInputGradientOp,
            nn::MaxPoolOp, nn::MaxPoolGradientOp>([&](auto kind) {
        if (w)
          write(*w, kind);
        return true;
      })
      .Default(false);
}

} // namespace

bool isOperator(Operation *op) { return dispatch(op, nullptr); }

void writeOperator(GraphWriter &writer, Operation *op) {
  check(dispatch(op, &writer), op, "an operation has no operator of ONNX");
}

} // namespace trainc
