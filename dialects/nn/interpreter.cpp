// SPDX-License-Identifier: Apache-2.0
//
// The three ways in which an operation has its meaning, and the walk over a block.
#include "dialects/nn/interpreter.h"
#include "dialects/errors/internal_error.h"
#include "dialects/nn/builder.h"

using namespace mlir;

namespace trainc::nn {

static bool isScalarCode(Operation *op) { return isa<PointwiseOpInterface, CastOp>(op); }

static bool areSplats(ArrayRef<Tensor> operands) {
  return !operands.empty() &&
         llvm::all_of(operands, [](const Tensor &operand) { return operand.isSplat(); });
}

static bool keepsSplats(Operation *op) { return isScalarCode(op) || op->hasTrait<MovesElements>(); }

bool Interpreter::isWithinLimit(Operation *op, ArrayRef<Tensor> operands) const {
  if (areSplats(operands) && keepsSplats(op))
    return true;
  auto cost = dyn_cast<CostOpInterface>(op);
  auto count = elementCount(tensorType(op->getResult(0)).getShape());
  return count && *count <= largest && (!cost || cost.flops() / 2 <= static_cast<double>(largest));
}

const ScalarProgram &Interpreter::program(Operation *op) {
  std::vector<const void *> key{op->getName().getAsOpaquePointer()};
  for (Value operand : op->getOperands())
    key.push_back(tensorType(operand).getElementType().getAsOpaquePointer());
  key.push_back(tensorType(op->getResult(0)).getElementType().getAsOpaquePointer());
  auto found = programs.find(key);
  if (found == programs.end())
    found = programs.emplace(std::move(key), ScalarProgram(op)).first;
  return found->second;
}

bool Interpreter::isExact(Operation *op) { return isScalarCode(op) && program(op).isExact(); }

FailureOr<Tensor> Interpreter::evaluate(Operation *op, ArrayRef<Tensor> operands) {
  auto values = evaluateResults(op, operands);
  if (failed(values))
    return failure();
  return values->front();
}

FailureOr<SmallVector<Tensor>> Interpreter::evaluateResults(Operation *op,
                                                            ArrayRef<Tensor> operands) {
  RankedTensorType type = tensorType(op->getResult(0));
  tooLarge = !isWithinLimit(op, operands);
  if (tooLarge)
    return op->emitOpError("is too large to be evaluated: ")
           << type << ", at most " << largest << " elements and as many multiplications";
  if (areSplats(operands) && op->hasTrait<MovesElements>() && type.getNumElements() > 0)
    return SmallVector<Tensor>{operands[0].withShape(type.getShape())};
  if (op->hasTrait<OnlyCompiled>())
    return op->emitOpError("is a user's function, which only a compiled program calls");
  if (auto interpreted = dyn_cast<InterpretedOpInterface>(op))
    return interpreted.interpretResults(operands);
  if (!isScalarCode(op))
    return evaluateParts(op, operands);
  Tensor value = program(op).run(operands, type);
  if (!value)
    return op->emitOpError("divides an integer by zero");
  return SmallVector<Tensor>{value};
}

FailureOr<SmallVector<Tensor>> Interpreter::evaluateParts(Operation *op,
                                                          ArrayRef<Tensor> operands) {
  auto composite = dyn_cast<DecomposableOpInterface>(op);
  if (!composite)
    internalError(op, "the reference interpreter has no meaning of it");
  Block parts;
  OpBuilder opBuilder(op->getContext());
  opBuilder.setInsertionPointToEnd(&parts);
  Builder builder(opBuilder, op->getLoc());
  SmallVector<Value> results = composite.decompose(builder);
  TensorValues values;
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), operands))
    values[operand] = tensor;
  if (failed(run(parts, values, [&](Value value) { return llvm::is_contained(results, value); })))
    return failure();
  return llvm::map_to_vector(results, [&](Value result) { return values.lookup(result); });
}

LogicalResult Interpreter::run(Block &block, TensorValues &values,
                               llvm::function_ref<bool(Value)> keep) {
  DenseMap<Value, Operation *> lastUse;
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      lastUse[operand] = &op;
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    auto isWanted = [&](Value result) { return lastUse.count(result) || keep(result); };
    if (llvm::none_of(op.getResults(), isWanted))
      continue;
    SmallVector<Tensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    auto computed = evaluateResults(&op, operands);
    if (failed(computed))
      return failure();
    for (auto [result, value] : llvm::zip_equal(op.getResults(), *computed))
      if (isWanted(result))
        values[result] = value;
    for (Value operand : op.getOperands())
      if (lastUse.lookup(operand) == &op && !keep(operand))
        values.erase(operand);
  }
  return success();
}

} // namespace trainc::nn
