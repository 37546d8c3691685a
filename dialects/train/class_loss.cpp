// SPDX-License-Identifier: Apache-2.0
//
// Losses of class scores.
#include "dialects/train/class_loss.h"
#include "dialects/nn/label_loss.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace trainc::train {

std::vector<LossSetting> classSettings(std::vector<LossSetting> own) {
  own.insert(own.begin(), {.name = "axis",
                           .help = "of the output, that the classes lie along; 1 for N, C, H, W",
                           .kind = LossSetting::integer,
                           .defaultValue = "-1"});
  own.push_back({.name = "class_weights",
                 .help = "one number for each class; a mean divides by the sum of the labels'",
                 .kind = LossSetting::numbers,
                 .least = 0});
  own.push_back({.name = "ignore_index",
                 .help = "label that counts nothing",
                 .kind = LossSetting::integer,
                 .defaultValue = "-100"});
  own.push_back(reductionSetting());
  return own;
}

Labels classLabels(RankedTensorType output, const LossSettings &settings, std::string &problem) {
  int64_t axis = settings.integer("axis"), rank = output.getRank();
  if (!isa<FloatType>(output.getElementType()) || rank < 1) {
    problem = "needs an output of floats with at least one axis, over classes";
    return {};
  }
  if (axis < -rank || axis >= rank) {
    problem = "has axis " + std::to_string(axis);
    return {};
  }
  SmallVector<int64_t> shape(output.getShape());
  auto classes = shape.begin() + (axis < 0 ? axis + rank : axis);
  int64_t count = *classes;
  size_t weights = settings.numbers("class_weights").size();
  if (weights > 0 && static_cast<int64_t>(weights) != count) {
    problem = "has " + std::to_string(weights) + " class_weights for " + std::to_string(count) +
              " classes";
    return {};
  }
  shape.erase(classes);
  return {RankedTensorType::get(shape, IntegerType::get(output.getContext(), 64)), count,
          settings.integer("ignore_index")};
}

IntegerAttr ignoredLabel(const LossInput &input) {
  return input.builder.op().getI64IntegerAttr(input.settings.integer("ignore_index"));
}

Value classesLast(const LossInput &input) {
  int64_t axis = input.settings.integer("axis");
  if (axis < 0)
    axis += nn::tensorType(input.output).getRank();
  return nn::moveLast(input.builder, input.output, axis);
}

LossValue lossOfLogProbabilities(const LossInput &input, Value logProbabilities,
                                 double labelSmoothing) {
  nn::LabelLossSettings settings{ignoredLabel(input), nullptr, labelSmoothing};
  if (ArrayRef<double> weights = input.settings.numbers("class_weights"); !weights.empty())
    settings.classWeights =
        constantNumbers(input.builder, weights, nn::tensorType(logProbabilities).getElementType());
  nn::LabelLosses rows = nn::labelLosses(input.builder, logProbabilities, input.labels, settings);
  if (input.settings.word("reduction") == "sum")
    return {.elements = rows.losses};
  return {.scalar = nn::meanOf(input.builder, rows)};
}

// A label is among the first k where its score beats those of all but k - 1 classes. Of equal
// scores the lower class is first, as in torch.argmax; NaN beats nothing, and nothing beats it.
std::vector<Metric> classMetrics(const LossInput &input) {
  nn::Builder &builder = input.builder;
  Value output = classesLast(input), labels = input.labels;
  auto type = nn::tensorType(output);
  ArrayRef<int64_t> shape = type.getShape();
  Value hit = builder.create<nn::LabelMaskOp>(type.clone(IntegerType::get(type.getContext(), 1)),
                                              labels, ignoredLabel(input));
  Value zero = builder.constant(0, type);
  Value ofLabel = builder.named("score_of_label", builder.select(hit, output, zero));
  Value score = builder.named("label_score", builder.reduceSum(ofLabel, -1));
  score = builder.expand(score, -1, shape);
  Value classes = builder.create<nn::IotaOp>(type.clone(nn::tensorType(labels).getElementType()),
                                             type.getRank() - 1);
  Value later = builder.create<nn::GreaterOp>(classes, builder.expand(labels, -1, shape));
  Value level = builder.create<nn::AndOp>(builder.create<nn::EqualOp>(output, score), later);
  Value beaten = builder.create<nn::OrOp>(builder.create<nn::GreaterOp>(score, output), level);
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

} // namespace trainc::train
