// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/gradient_graph/backward_pass.h"
#include "dialects/errors/internal_error.h"

using namespace mlir;

namespace trainc {

void BackwardPass::add(Value value, Value gradient) {
  Value &sum = gradients[value];
  sum = sum ? b.add(sum, gradient) : gradient;
}

void BackwardPass::through(llvm::ArrayRef<Operation *> operations) {
  for (Operation *op : llvm::reverse(operations)) {
    SmallVector<Value> ofResults, ofOperands(op->getNumOperands());
    for (Value result : op->getResults())
      ofResults.push_back(gradients.lookup(result));
    auto differentiable = dyn_cast<nn::DifferentiableOpInterface>(op);
    if (!differentiable || llvm::all_of(ofResults, [](Value value) { return !value; }))
      continue;
    llvm::SmallBitVector needed(op->getNumOperands());
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      needed[i] = isa<FloatType>(nn::tensorType(operand).getElementType());
    LogicalResult built = differentiable.buildGradient(b, ofResults, needed, ofOperands);
    check(succeeded(built), op, "has no gradient");
    for (auto [operand, gradient] : llvm::zip_first(op->getOperands(), ofOperands))
      if (gradient)
        add(operand, gradient);
  }
}

Value BackwardPass::of(Value value) {
  Value found = gradients.lookup(value);
  return found ? found : b.constant(0, value.getType());
}

} // namespace trainc
