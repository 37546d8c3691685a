// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/gradient_graph/graph_writer.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/onnx/onnx_types.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/Format.h"

using namespace llvm;
using namespace mlir;

namespace trainc {

constexpr int64_t kWholeConstant = 64; // elements, up to which equal ones are written one by one

int32_t onnxType(Type element) { return static_cast<int32_t>(nn::onnxTypeNumber(element)); }

void describe(onnx::ValueInfoProto &value, StringRef name, RankedTensorType type) {
  reader::describe(value, name, onnxType(type.getElementType()), type.getShape());
}

/// What a value is called where no other is.
static std::string titleOfValue(Value value) { return nodeName(resultLocation(value)).value(); }

GraphWriter::GraphWriter(onnx::GraphProto &graph, func::FuncOp function,
                         ArrayRef<std::string> inputs, ArrayRef<std::string> outputs)
    : graph(graph) {
  for (auto [argument, name] : zip_equal(function.getArguments(), inputs)) {
    known[argument] = name;
    names.take(name);
  }
  for (auto [value, name] : zip_equal(function.front().getTerminator()->getOperands(), outputs)) {
    names.take(name);
    if (value.getDefiningOp())
      wanted.try_emplace(value, name);
  }
  for (Operation &op : function.front())
    if (op.getNumResults() == 1)
      bearers[titleOfValue(op.getResult(0))] = &op;
}

std::string GraphWriter::nameOf(Value value) {
  Operation *op = value.getDefiningOp();
  std::string title = titleOfValue(value), kind = op->getName().stripDialect().str();
  if (title.empty())
    return names.unique(kind);
  return names.unique(bearers.lookup(title) == op ? title : title + "." + kind);
}

onnx::NodeProto &GraphWriter::add(StringRef opType, ArrayRef<std::string> inputs,
                                  std::string output) {
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type(opType.str());
  node.set_name(output);
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(std::move(output));
  return node;
}

onnx::NodeProto &GraphWriter::node(StringRef opType, ArrayRef<std::string> inputs, Value value) {
  auto found = wanted.find(value);
  std::string name = found != wanted.end() ? found->second : nameOf(value);
  known[value] = name;
  if (found == wanted.end()) // outputs say it themselves
    describe(*graph.add_value_info(), name, nn::tensorType(value));
  return add(opType, inputs, name);
}

std::string GraphWriter::part(StringRef opType, ArrayRef<std::string> inputs, Value value) {
  std::string title = titleOfValue(value), kind = opType.lower();
  return add(opType, inputs, names.unique(title.empty() ? kind : title + "." + kind)).output(0);
}

std::string GraphWriter::secondOutput(onnx::NodeProto &node) {
  node.add_output(names.unique(node.output(0) + ".indices"));
  return node.output(1);
}

std::string GraphWriter::initializer(StringRef name, const nn::Tensor &values) {
  onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name.str());
  tensor.set_data_type(onnxType(values.type().getElementType()));
  for (int64_t size : values.shape())
    tensor.add_dims(size);
  std::string &bytes = *tensor.mutable_raw_data();
  if (!values.isSplat())
    bytes.assign(values.at(0), static_cast<size_t>(values.count() * values.width()));
  else
    for (int64_t i = 0; i < values.count(); ++i)
      bytes.append(values.at(0), static_cast<size_t>(values.width()));
  return name.str();
}

std::string GraphWriter::integers(ArrayRef<int64_t> numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  std::string &name = shared["[" + text + "]"];
  if (!name.empty())
    return name;
  auto *context = bearers.begin()->second->getContext();
  auto type =
      RankedTensorType::get({static_cast<int64_t>(numbers.size())}, IntegerType::get(context, 64));
  name = names.unique("[" + text + "]");
  return initializer(name, nn::Tensor::ofIntegers(type, numbers));
}

/// Short where it is exact: `0.5`.
static std::string textOfNumber(double number, Type element) {
  if (element.isInteger(1))
    return number != 0 ? "true" : "false";
  std::string text;
  raw_string_ostream stream(text);
  if (number == std::trunc(number) && std::abs(number) < 1e15)
    stream << static_cast<int64_t>(number);
  else
    stream << format("%.9g", number);
  return text;
}

std::string GraphWriter::scalar(const nn::Tensor &value) {
  Type element = value.type().getElementType();
  std::string key(value.at(0), static_cast<size_t>(value.width()));
  std::string &name = shared[std::to_string(onnxType(element)) + ":" + key];
  if (name.empty())
    name = initializer(names.unique(textOfNumber(value.real(0), element)), value.withShape({}));
  return name;
}

std::string GraphWriter::scalar(double number, Type element) {
  return scalar(nn::Tensor::ofReals(RankedTensorType::get({}, element), number));
}

std::string GraphWriter::reshaped(const std::string &x, ArrayRef<int64_t> shape, Value value) {
  return part("Reshape", {x, integers(shape)}, value);
}

GraphWriter::Thin GraphWriter::thinBroadcast(Value value, Value x, ArrayRef<int64_t> dimensions) {
  const int64_t rank = nn::tensorType(value).getRank();
  Thin inner = thin(x);
  SmallVector<int64_t> padded(nn::tensorType(x).getRank() - inner.shape.size(), 1);
  padded.append(inner.shape);
  SmallVector<int64_t> shape(rank, 1);
  for (auto [from, to] : enumerate(dimensions))
    shape[to] = padded[from];
  size_t leading = 0;
  while (leading < shape.size() && shape[leading] == 1)
    ++leading;
  shape.erase(shape.begin(), shape.begin() + static_cast<int64_t>(leading));
  if (shape != inner.shape)
    inner = {reshaped(inner.name, shape, value), shape};
  return inner;
}

GraphWriter::Thin GraphWriter::thinIndex(Value value, int64_t dimension) {
  RankedTensorType type = nn::tensorType(value);
  Type element = type.getElementType();
  const int64_t size = type.getShape()[dimension];
  std::string row = part(
      "Range", {scalar(0, element), scalar(static_cast<double>(size), element), scalar(1, element)},
      value);
  SmallVector<int64_t> shape(type.getRank() - dimension, 1);
  shape[0] = size;
  return {shape.size() == 1 ? row : reshaped(row, shape, value), shape};
}

GraphWriter::Thin GraphWriter::thin(Value value) {
  if (auto found = thinned.find(value); found != thinned.end())
    return found->second;
  DenseElementsAttr elements;
  Thin result;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat()) {
    result = {scalar(nn::Tensor::of(elements)), {}};
  } else if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>()) {
    result = thinBroadcast(value, broadcast.getX(), broadcast.getDimensions());
  } else if (auto index = value.getDefiningOp<nn::IotaOp>()) {
    result = thinIndex(value, static_cast<int64_t>(index.getDimension()));
  } else {
    result = {whole(value), SmallVector<int64_t>(nn::tensorType(value).getShape())};
  }
  thinned[value] = result;
  return result;
}

/// The node, or the initializer, of what `thin` knows.
std::string GraphWriter::made(Value value) {
  RankedTensorType type = nn::tensorType(value);
  auto constant = value.getDefiningOp<nn::ConstantOp>();
  if (constant && !wanted.count(value)) {
    nn::Tensor values = nn::Tensor::of(constant.getValue());
    if (!values.isSplat() || values.count() <= kWholeConstant)
      return initializer(nameOf(value), values);
  }
  if (constant && !nn::Tensor::of(constant.getValue()).isSplat())
    return node("Identity", {initializer(nameOf(value), nn::Tensor::of(constant.getValue()))},
                value)
        .output(0);
  Thin narrow = thin(value);
  if (narrow.shape == type.getShape() && !wanted.count(value))
    return narrow.name;
  return node("Expand", {narrow.name, integers(type.getShape())}, value).output(0);
}

std::string GraphWriter::whole(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  std::string name = made(value);
  known[value] = name;
  return name;
}

std::vector<std::string> GraphWriter::spread(ValueRange operands, ArrayRef<int64_t> shape) {
  std::vector<std::string> result;
  SmallVector<int64_t> reached;
  for (Value operand : operands) {
    Thin narrow = thin(operand);
    result.push_back(narrow.name);
    if (auto both = nn::broadcastShapes(reached, narrow.shape))
      reached = *both;
  }
  if (ArrayRef<int64_t>(reached) == shape)
    return result;
  for (auto [i, operand] : enumerate(operands))
    result[i] = whole(operand);
  return result;
}

void GraphWriter::finish(func::FuncOp function, ArrayRef<std::string> outputs) {
  for (auto [value, name] : zip_equal(function.front().getTerminator()->getOperands(), outputs)) {
    std::string made = whole(value);
    if (made != name)
      add("Identity", {made}, name);
    describe(*graph.add_output(), name, nn::tensorType(value));
  }
}

} // namespace trainc
