// SPDX-License-Identifier: Apache-2.0
//
// Operands of library steps (library_step.h).
#include "dialects/nn/library_step.h"

using namespace mlir;

namespace trainc::nn {

void nameResultsByRole(Operation *step, Operation *op, ArrayRef<StringRef> roles) {
  std::string title = nodeName(withoutRole(op->getLoc())).title();
  OpBuilder attributes(op->getContext());
  SmallVector<Attribute> names;
  for (StringRef role : roles)
    names.push_back(
        attributes.getStringAttr(title.empty() || role.empty() ? title : title + "." + role.str()));
  step->setAttr("result_names", attributes.getArrayAttr(names));
}

Value StepBuilder::overwritable(Value operand) {
  Value made = operand;
  while (made.hasOneUse() && made.getDefiningOp<ReshapeOp>())
    made = made.getDefiningOp()->getOperand(0);
  Operation *maker = made.getDefiningOp();
  bool dies = made.hasOneUse() && maker && !isa<ConstantOp>(maker);
  // A new tensor with the same elements: fuse gives it a kernel, since a step uses it.
  return dies && !isView(maker) ? made : create<ReshapeOp>(operand.getType(), operand).getResult();
}

} // namespace trainc::nn
