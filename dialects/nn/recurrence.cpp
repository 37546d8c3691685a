// SPDX-License-Identifier: Apache-2.0
//
// Shape rules and lowering of recurrences (recurrence.h).
#include "dialects/nn/recurrence.h"

using namespace mlir;

namespace trainc::nn {

FailureOr<recurrence_sizes> recurrenceSizes(RankedTensorType gates, RankedTensorType r,
                                            int64_t blocks) {
  if (gates.getRank() != 3 || r.getRank() != 2 || gates.getElementType() != r.getElementType())
    return failure();
  recurrence_sizes sizes{gates.getDimSize(0), gates.getDimSize(1), r.getDimSize(1)};
  if (sizes.steps < 1 || sizes.batch < 1 || sizes.hidden < 1 ||
      gates.getDimSize(2) / blocks != sizes.hidden || gates.getDimSize(2) % blocks != 0 ||
      r.getDimSize(0) != gates.getDimSize(2))
    return failure();
  return sizes;
}

LogicalResult checkOperands(std::optional<Location> location, Type element,
                            ArrayRef<SizedOperand> operands) {
  for (const SizedOperand &operand : operands) {
    Type expected =
        operand.name == "lengths" ? IntegerType::get(element.getContext(), 64) : element;
    auto type = RankedTensorType::get(operand.shape, expected);
    if (operand.operand.getType() != type)
      return emitOptionalError(location, operand.name, " is a ", type, ", found ",
                               operand.operand.getType());
  }
  return success();
}

static std::optional<activation> activationNamed(StringRef name) {
  const auto *found = llvm::find(activation_names, name);
  if (found == std::end(activation_names))
    return std::nullopt;
  return static_cast<activation>(found - std::begin(activation_names));
}

/// Whether the value of the function tells its slope.
static bool tellsSlope(activation kind, double alpha) {
  switch (kind) {
  case activation::leaky_relu:
  case activation::thresholded_relu:
  case activation::elu:
    return alpha >= 0;
  case activation::scaled_tanh:
    return alpha != 0;
  default:
    return true;
  }
}

LogicalResult checkActivations(std::optional<Location> location, ArrayAttr activations,
                               ArrayRef<double> alphas, ArrayRef<double> betas, const APFloat &clip,
                               size_t count) {
  if (activations.size() != count || alphas.size() != count || betas.size() != count)
    return emitOptionalError(location, "expects ", count,
                             " activations, each with an alpha and a beta");
  if (clip.isNaN() || (clip.isNegative() && !clip.isZero()))
    return emitOptionalError(location, "clip is not negative, found ", clip.convertToDouble());
  for (auto [attribute, alpha] : llvm::zip(activations, alphas)) {
    StringRef name = cast<StringAttr>(attribute).getValue();
    auto kind = activationNamed(name);
    if (!kind)
      return emitOptionalError(location, "knows no activation '", name, "'");
    if (!tellsSlope(*kind, alpha))
      return emitOptionalError(location, "an alpha of ", alpha, " leaves the slope of '", name,
                               "' unknown");
  }
  return success();
}

CellFunctions cellFunctions(ArrayAttr activations, ArrayRef<double> alphas, ArrayRef<double> betas,
                            const APFloat &clip) {
  CellFunctions functions{{}, alphas, betas, clip.convertToDouble()};
  for (Attribute name : activations)
    functions.kinds.push_back(
        static_cast<int64_t>(*activationNamed(cast<StringAttr>(name).getValue())));
  return functions;
}

double recurrenceFlops(const recurrence_sizes &sizes, int64_t blocks) {
  constexpr double perGate = 20; // mostly an exponential function
  double gates =
      static_cast<double>(sizes.steps * sizes.batch) * static_cast<double>(blocks * sizes.hidden);
  return gates * (2.0 * static_cast<double>(sizes.hidden) + perGate);
}

SmallVector<Replacement> lowerRecurrence(StepBuilder &builder, Operation *op,
                                         const CellFunctions &functions, bool reverse,
                                         const RecurrenceCall &wanted) {
  SmallVector<Value> inputs;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    inputs.push_back(llvm::is_contained(wanted.inPlace, int64_t(i)) ? builder.overwritable(operand)
                                                                    : builder.contiguous(operand));
  auto call = builder.create<kernel::CallOp>(op->getResultTypes(), wanted.function, wanted.library,
                                             ArrayRef<int64_t>(), inputs);
  OpBuilder attributes(call.getContext());
  SmallVector<Attribute> numbers{attributes.getDenseI64ArrayAttr(
                                     {wanted.sizes.steps, wanted.sizes.batch, wanted.sizes.hidden}),
                                 attributes.getDenseI64ArrayAttr(functions.kinds),
                                 attributes.getDenseF64ArrayAttr(functions.alphas),
                                 attributes.getDenseF64ArrayAttr(functions.betas),
                                 attributes.getF64FloatAttr(functions.clip),
                                 attributes.getBoolAttr(reverse)};
  if (wanted.flag)
    numbers.push_back(attributes.getBoolAttr(*wanted.flag));
  call.setNumbersAttr(attributes.getArrayAttr(numbers));
  call.setInPlace(wanted.inPlace);
  call.setFlops(APFloat(recurrenceFlops(wanted.sizes, wanted.blocks)));
  Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  call.setScratchBytes(
      recurrence_scratch_bytes(wanted.blocks, wanted.sizes, elementBytes(element)));
  nameResultsByRole(call, op, wanted.roles);
  SmallVector<Replacement> replacements;
  for (auto [old, replacement] : llvm::zip_equal(op->getResults(), call.getOuts()))
    replacements.push_back({old, replacement});
  return replacements;
}

static Value stepsFrom(Builder &builder, Value states, int64_t first) {
  return builder.slice(states, 0, first, tensorType(states).getDimSize(0) - 1);
}

Value beforeSteps(Builder &builder, Value states, bool reverse) {
  return stepsFrom(builder, states, reverse ? 1 : 0);
}

Value behindSteps(Builder &builder, Value states, bool reverse) {
  return stepsFrom(builder, states, reverse ? 0 : 1);
}

Value blocksOf(Builder &builder, Value gates, int64_t hidden, int64_t first, int64_t count) {
  return builder.slice(gates, tensorType(gates).getRank() - 1, first * hidden, count * hidden);
}

static Value asMatrix(Builder &builder, Value x) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  return builder.reshape(x, {shape[0] * shape[1], shape[2]});
}

Value weightOfSteps(Builder &builder, Value gradients, Value met) {
  return builder.matmul(asMatrix(builder, gradients), asMatrix(builder, met), true);
}

} // namespace trainc::nn
