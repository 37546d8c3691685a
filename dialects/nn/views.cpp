// SPDX-License-Identifier: Apache-2.0
//
// Operations that compute nothing (views.h).
#include "dialects/nn/views.h"

using namespace mlir;

namespace trainc {

bool isView(Operation *op) {
  return isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::ReverseOp,
                         nn::BroadcastOp>(op);
}

Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getX();
  return value;
}

} // namespace trainc
