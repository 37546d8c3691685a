// SPDX-License-Identifier: Apache-2.0
//
// kernel.call: a function of the runtime as a step.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace trainc::kernel {

LogicalResult CallOp::verify() {
  for (Attribute number : getNumbers())
    if (!isa<IntegerAttr, FloatAttr, DenseI64ArrayAttr, DenseF64ArrayAttr>(number))
      return emitOpError("expects numbers or lists of i64 or f64, found ") << number;
  auto fits = [](std::optional<ArrayRef<int64_t>> list, size_t size) {
    return !list || list->size() == size;
  };
  if (!fits(getReads(), getInputs().size()) || !fits(getWrites(), getOuts().size()))
    return emitOpError("expects bytes in `reads` for each input and in `writes` for each result");
  if (!fits(getInPlace(), getOuts().size()))
    return emitOpError("expects an input, or -1, in `in_place` for each result");
  for (int64_t result : getResultArguments().value_or(ArrayRef<int64_t>()))
    if (result < 0 || result >= static_cast<int64_t>(getOuts().size()))
      return emitOpError("passes result ") << result << ", which is not there";
  llvm::SmallDenseSet<int64_t> taken;
  for (auto [result, input] : llvm::zip(getOuts(), getInPlace().value_or(ArrayRef<int64_t>()))) {
    if (input < 0)
      continue;
    if (input >= static_cast<int64_t>(getInputs().size()) || !taken.insert(input).second)
      return emitOpError("takes input ") << input << ", which is not there or already taken";
    if (bytesOf(getInputs()[input].getType()) != bytesOf(result.getType()))
      return emitOpError("writes a ")
             << result.getType() << " in place of a " << getInputs()[input].getType();
  }
  return success();
}

StepCall CallOp::call() {
  StepCall call{getFunction().str(), getLibrary().str(), {}};
  for (Attribute number : getNumbers())
    call.arguments.push_back(number);
  ArrayRef<int64_t> taken = getInPlace().value_or(ArrayRef<int64_t>());
  for (auto [i, input] : llvm::enumerate(getInputs()))
    if (!llvm::is_contained(taken, static_cast<int64_t>(i)))
      call.arguments.push_back(input);
  if (std::optional<ArrayRef<int64_t>> results = getResultArguments())
    for (int64_t result : *results)
      call.arguments.push_back(getOuts()[result]);
  else
    for (Value out : getOuts())
      call.arguments.push_back(out);
  return call;
}

bool CallOp::writeRounded(Type element) {
  if (!getRoundable() || !isNarrowFloat(element))
    return false;
  Value out = getOuts().front();
  out.setType(cast<RankedTensorType>(out.getType()).clone(element));
  return true;
}

/// `scatter_add 6, 10, 8`: the function and the numbers that it is given, lists as 3x3, or words
/// that the operation had for them.
std::string CallOp::describe() {
  std::string text = getFunction().str();
  if (auto words = (*this)->getAttrOfType<StringAttr>("words"))
    return text + " " + words.str();
  llvm::raw_string_ostream stream(text);
  stream << (getNumbers().empty() ? "" : " ");
  auto print = [&](Attribute number) {
    if (auto list = dyn_cast<DenseI64ArrayAttr>(number))
      llvm::interleave(list.asArrayRef(), stream, "x");
    else if (auto reals = dyn_cast<DenseF64ArrayAttr>(number))
      reals.print(stream);
    else
      number.print(stream, /*elideType=*/true);
  };
  llvm::interleave(getNumbers(), stream, print, ", ");
  return text;
}

StepCost CallOp::cost(SymbolTableCollection &) {
  StepCost cost;
  cost.flops = getFlops().convertToDouble();
  auto bytes = [](std::optional<ArrayRef<int64_t>> given, ValueRange values,
                  SmallVectorImpl<int64_t> &into) {
    if (given)
      into.assign(given->begin(), given->end());
    else
      for (Value value : values)
        into.push_back(bytesOf(value.getType()));
  };
  bytes(getReads(), getInputs(), cost.reads);
  bytes(getWrites(), getOuts(), cost.writes);
  return cost;
}

std::optional<unsigned> CallOp::operandTaken(unsigned result) {
  auto taken = getInPlace();
  if (!taken || (*taken)[result] < 0)
    return std::nullopt;
  return static_cast<unsigned>((*taken)[result]);
}

int64_t CallOp::scratchBytes(SymbolTableCollection &) {
  return static_cast<int64_t>(getScratchBytes());
}

bool CallOp::isOrdered() { return getOrdered(); }

} // namespace trainc::kernel
