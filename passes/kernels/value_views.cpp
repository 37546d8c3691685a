// SPDX-License-Identifier: Apache-2.0
//
// Index maps through nn's view operations (value_views.h).
#include "passes/kernels/value_views.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace trainc {

using planning::IndexMap;
using planning::Sizes;

Sizes sizesOf(Value value) { return nn::tensorType(value).getShape().vec(); }

std::optional<IndexMap> operandMap(Operation *view, const IndexMap &result,
                                   std::optional<planning::Split> &split) {
  Sizes operand = sizesOf(view->getOperand(0));
  return TypeSwitch<Operation *, std::optional<IndexMap>>(view)
      .Case([&](nn::ReshapeOp op) {
        return result.throughReshape(sizesOf(op->getResult(0)), operand, split);
      })
      .Case([&](nn::TransposeOp op) { return result.throughTranspose(op.getPermutation().vec()); })
      .Case([&](nn::SliceOp op) {
        return result.throughSlice(op.getStarts().vec(), op.getStrides().vec());
      })
      .Case([&](nn::ReverseOp op) {
        return result.throughReverse(op.getDimensions().vec(), operand);
      })
      .Case([&](nn::BroadcastOp op) {
        return result.throughBroadcast(op.getDimensions().vec(), operand);
      })
      .Default([](Operation *) { return std::nullopt; });
}

bool isSplatConstant(Operation *op) {
  auto constant = dyn_cast_or_null<nn::ConstantOp>(op);
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

void applySplit(Sizes &space, const planning::Split &split) {
  int64_t outer = space[split.dimension] / split.inner;
  space[split.dimension] = split.inner;
  space.insert(space.begin() + split.dimension, outer);
}

} // namespace trainc
