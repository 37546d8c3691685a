// SPDX-License-Identifier: Apache-2.0
//
// nn.concat; ONNX Concat.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <cstring>

using namespace mlir;

namespace trainc::nn {

static OnnxResults importConcat(OnnxNode &node) {
  SmallVector<Value> inputs;
  for (unsigned i = 0; i < node.numInputs(); ++i)
    inputs.push_back(node.input(i));
  FailureOr<int64_t> found = axisOf(node, tensorType(inputs[0]).getRank(), 1);
  if (failed(found))
    return failure();
  int64_t axis = *found;
  // Exporters leave empty tensors here (an empty key cache): they add nothing.
  auto isEmpty = [](Value input) { return tensorType(input).getNumElements() == 0; };
  if (!llvm::all_of(inputs, isEmpty))
    llvm::erase_if(inputs, isEmpty);
  for (Value input : inputs) {
    auto first = tensorType(inputs[0]), type = tensorType(input);
    bool fits =
        type.getRank() == first.getRank() && type.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < type.getRank(); ++i)
      fits = i == axis || type.getDimSize(i) == first.getDimSize(i);
    if (!fits)
      return node.error("inputs do not agree outside axis " + llvm::Twine(axis));
  }
  if (inputs.size() == 1)
    return inputs;
  return SmallVector<Value>{node.builder().create<ConcatOp>(inputs, axis)};
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty()) // concat-c1
    return emitOptionalError(location, "expects at least one operand");
  auto first = tensorType(adaptor.getInputs().front());
  int64_t dimension = adaptor.getDimension();
  if (dimension < 0 || dimension >= first.getRank()) // concat-c1
    return emitOptionalError(location, "dimension ", dimension, " is out of range for rank ",
                             first.getRank());
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    auto type = tensorType(input);
    bool fits =
        type.getRank() == first.getRank() && type.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < type.getRank(); ++i)
      fits = i == dimension || type.getDimSize(i) == shape[i];
    if (!fits) // concat-c2
      return emitOptionalError(location, "operands agree but for dimension ", dimension, ", found ",
                               first, " and ", type);
    shape[dimension] += type.getDimSize(dimension);
  }
  types.push_back(first.clone(shape));
  return success();
}

LogicalResult ConcatOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                      const llvm::SmallBitVector &needed,
                                      SmallVectorImpl<Value> &operandGradients) {
  int64_t start = 0;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    int64_t size = tensorType(input).getDimSize(getDimension());
    operandGradients.push_back(
        needed[index] ? builder.slice(resultGradients[0], getDimension(), start, size) : Value());
    start += size;
  }
  return success();
}

double ConcatOp::flops() { return 0; }

FailureOr<Tensor> ConcatOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  Tensor result(type);
  int64_t dimension = getDimension(), width = result.width();
  char *to = result.data();
  int64_t rows = computeProduct(type.getShape().take_front(dimension));
  for (int64_t row = 0; row < rows; ++row)
    for (const Tensor &operand : operands) {
      int64_t block = computeProduct(operand.shape().drop_front(dimension));
      for (int64_t i = 0; i < block; ++i, to += width)
        std::memcpy(to, operand.at(row * block + i), width);
    }
  return result;
}

static OnnxRegistration concat("Concat", 4, importConcat);

} // namespace trainc::nn
