// SPDX-License-Identifier: Apache-2.0
//
// nn.label_mask: what losses other than nn.cross_entropy pick by class labels with.
#include "dialects/nn/builder.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult LabelMaskOp::verify() {
  auto type = getResult().getType(), labels = getLabels().getType();
  if (type.getRank() < 1 || type.getShape().drop_back() != labels.getShape())
    return emitOpError(
               "has the shape of the labels and one dimension of classes, found ") // label_mask-c1
           << type << " for " << labels;
  return success();
}

double LabelMaskOp::flops() { return 2.0 * getResult().getType().getNumElements(); }

SmallVector<Value> LabelMaskOp::decompose(Builder &builder) {
  ArrayRef<int64_t> shape = getResult().getType().getShape();
  auto labelType = getLabels().getType();
  Value classes = builder.create<IotaOp>(labelType.clone(shape), shape.size() - 1);
  Value hit = builder.named(
      "is_label", builder.create<EqualOp>(classes, builder.expand(getLabels(), -1, shape)));
  if (!getIgnoreIndex())
    return {hit};
  double ignored = static_cast<double>(static_cast<int64_t>(*getIgnoreIndex()));
  Value none = builder.create<EqualOp>(getLabels(), builder.constant(ignored, labelType));
  Value counted = builder.named("is_counted", builder.create<NotOp>(none));
  return {builder.create<AndOp>(hit, builder.expand(counted, -1, shape))};
}

} // namespace trainc::nn
