// SPDX-License-Identifier: Apache-2.0
//
// nn.custom. compiler/onnx/import/custom_operators.cpp makes it from a manifest, optimizers for
// functions of the runtime that they alone need.
#include "dialects/nn/builder.h"
#include "dialects/nn/library_step.h"

using namespace mlir;

namespace trainc::nn {

/// A function of `backward`.
struct BackwardFunction {
  explicit BackwardFunction(Attribute attribute) : of(cast<DictionaryAttr>(attribute)) {}
  DictionaryAttr of;
  StringAttr function() const { return of.getAs<StringAttr>("function"); }
  ArrayAttr numbers() const { return of.getAs<ArrayAttr>("numbers"); }
  FloatAttr flops() const { return of.getAs<FloatAttr>("flops"); }
  DenseI64ArrayAttr inputs() const { return of.getAs<DenseI64ArrayAttr>("inputs"); }
  DenseI64ArrayAttr gradients() const { return of.getAs<DenseI64ArrayAttr>("gradients"); }
};

LogicalResult CustomOp::verify() { // custom-c1
  auto areNumbers = [](ArrayAttr numbers) {
    return numbers && llvm::all_of(numbers, [](Attribute number) {
             return isa<IntegerAttr, FloatAttr, DenseI64ArrayAttr>(number);
           });
  };
  auto areBelow = [](DenseI64ArrayAttr list, size_t limit) {
    return list && llvm::all_of(list.asArrayRef(), [&](int64_t number) {
             return number >= 0 && number < static_cast<int64_t>(limit);
           });
  };
  if (!areNumbers(getNumbers()))
    return emitOpError("expects integers and floats as numbers, found ") << getNumbers();
  for (Attribute attribute : getBackward()) {
    BackwardFunction function(attribute);
    if (!function.function() || !function.flops() || !areNumbers(function.numbers()) ||
        !areBelow(function.inputs(), getInputs().size() + 2 * getOuts().size()) ||
        !areBelow(function.gradients(), getInputs().size()))
      return emitOpError("has no such backward function: ") << attribute;
  }
  return success();
}

LogicalResult CustomOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                      const llvm::SmallBitVector &needed,
                                      SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(getInputs().size(), Value());
  SmallVector<Value> known(getInputs());
  llvm::append_range(known, getOuts());
  for (auto [gradient, out] : llvm::zip(resultGradients, getOuts())) {
    bool isFloat = isa<FloatType>(tensorType(out).getElementType());
    known.push_back(!gradient && isFloat ? builder.constant(0, out.getType()) : gradient);
  }
  for (Attribute attribute : getBackward()) {
    BackwardFunction function(attribute);
    ArrayRef<int64_t> written = function.gradients();
    if (llvm::none_of(written, [&](int64_t operand) { return needed[operand]; }))
      continue;
    SmallVector<Value> inputs;
    for (int64_t input : function.inputs().asArrayRef())
      inputs.push_back(known[input]);
    SmallVector<Type> types;
    for (int64_t operand : written)
      types.push_back(getInputs()[operand].getType());
    auto call = builder.op().create<CustomOp>(
        builder.location(), types, inputs, function.function(), getLibraryAttr(),
        function.numbers(), function.flops(), builder.op().getArrayAttr({}));
    for (auto [operand, gradient] : llvm::zip(written, call.getOuts()))
      operandGradients[operand] = gradient;
  }
  for (int operand : needed.set_bits())
    if (!operandGradients[operand])
      return (emitError("has no gradient with respect to input ") << operand).attachNote()
             << "try: a backward function in its manifest, or --freeze";
  return success();
}

double CustomOp::flops() { return getFlopsAttr().getValueAsDouble(); }

SmallVector<Replacement> CustomOp::lowerToStep(StepBuilder &builder) {
  SmallVector<Value> inputs;
  for (Value input : getInputs())
    inputs.push_back(StepBuilder::contiguous(input));
  auto call = builder.create<kernel::CallOp>(getOuts().getTypes(), getFunction(), getLibrary(),
                                             ArrayRef<int64_t>(), inputs);
  call.setNumbersAttr(getNumbers());
  call.setFlops(getFlopsAttr().getValue());
  SmallVector<Replacement> replacements;
  for (auto [result, out] : llvm::zip(getOuts(), call.getOuts()))
    replacements.push_back({result, out});
  return replacements;
}

} // namespace trainc::nn
