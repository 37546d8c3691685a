// SPDX-License-Identifier: Apache-2.0
//
// Mean cross-entropy of the output's last dimension against class labels.
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static RankedTensorType classLabels(RankedTensorType output, std::string &problem) {
  if (isa<FloatType>(output.getElementType()) && output.getRank() >= 1)
    return RankedTensorType::get(output.getShape().drop_back(),
                                 IntegerType::get(output.getContext(), 64));
  problem = "needs an output of floats with at least one axis, the last one over classes";
  return {};
}

static Value crossEntropy(nn::Builder &builder, Value output, Value labels) {
  return builder.create<nn::CrossEntropyOp>(output, labels,
                                            builder.op().getI64IntegerAttr(kIgnoreIndex));
}

// A label is among the first k where its logit beats those of all but k - 1 classes. Of equal
// logits the lower class is first, as in torch.argmax; NaN beats nothing, and nothing beats it.
static std::vector<Metric> classMetrics(nn::Builder &builder, Value output, Value labels) {
  auto type = nn::tensorType(output);
  ArrayRef<int64_t> shape = type.getShape();
  Value hit = builder.create<nn::LabelMaskOp>(type.clone(IntegerType::get(type.getContext(), 1)),
                                              labels, builder.op().getI64IntegerAttr(kIgnoreIndex));
  Value zero = builder.constant(0, type);
  Value ofLabel = builder.named("score_of_label", builder.select(hit, output, zero));
  Value logit = builder.named("label_score", builder.reduceSum(ofLabel, -1));
  logit = builder.expand(logit, -1, shape);
  Value classes = builder.create<nn::IotaOp>(type.clone(nn::tensorType(labels).getElementType()),
                                             type.getRank() - 1);
  Value later = builder.create<nn::GreaterOp>(classes, builder.expand(labels, -1, shape));
  Value level = builder.create<nn::AndOp>(builder.create<nn::EqualOp>(output, logit), later);
  Value beaten = builder.create<nn::OrOp>(builder.create<nn::GreaterOp>(logit, output), level);
  Value count = builder.named("beaten_classes",
                              builder.reduceSum(builder.cast(beaten, type.getElementType()), -1));
  auto amongFirst = [&](int64_t k, StringRef role) {
    Value least = builder.constant(static_cast<double>(shape.back() - k) - 0.5, count.getType());
    Value correct = builder.create<nn::GreaterOp>(count, least);
    return builder.cast(builder.named(role, correct), type.getElementType());
  };
  std::vector<Metric> metrics = {{"accuracy", amongFirst(1, "is_correct")}};
  constexpr int64_t kFew = 5;
  if (shape.back() > kFew)
    metrics.push_back({"top_5_accuracy", amongFirst(kFew, "is_among_5")});
  return metrics;
}

static LossRegistration registration({
    .name = "cross_entropy",
    .description = "cross-entropy over the last axis, mean over rows, ignore index -100",
    .labelsAreClasses = true,
    .labelType = classLabels,
    .build = crossEntropy,
    .buildMetrics = classMetrics,
});

} // namespace trainc::train
