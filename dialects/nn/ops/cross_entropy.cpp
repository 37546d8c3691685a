// SPDX-License-Identifier: Apache-2.0
//
// nn.cross_entropy. Value and gradient share the rows' maxima and sums: both are built by the same
// functions below, and decompose merges equal operations.
#include "dialects/nn/builder.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto logits = tensorType(adaptor.getLogits()), labels = tensorType(adaptor.getLabels());
  if (logits.getRank() < 1 || logits.getShape().drop_back() != labels.getShape())
    return emitOptionalError(location, // cross_entropy-c1
                             "labels have the shape of logits without the last dimension, found ",
                             labels, " for ", logits);
  types.push_back(logits.clone(ArrayRef<int64_t>()));
  return success();
}

namespace {

// What value and gradient have in common.
struct Parts {
  Value shifted, exponentials, sum; // of the logits' shape twice, then one per row
  Value hit;                        // the label's class, of the logits' shape
  Value counted, count;             // rows that are not ignored (null: none is), their number

  Parts(Builder &builder, Value logits, Value labels, std::optional<uint64_t> ignored) {
    auto type = tensorType(logits), labelType = tensorType(labels);
    Value largest = builder.named("largest_logit", builder.reduceMax(logits, -1));
    shifted = builder.named("shifted_logit",
                            builder.sub(logits, builder.expand(largest, -1, type.getShape())));
    exponentials = builder.named("exponential", builder.exp(shifted));
    sum = builder.named("sum_of_exponentials", builder.reduceSum(exponentials, -1));
    Value classes =
        builder.create<IotaOp>(type.clone(labelType.getElementType()), type.getRank() - 1);
    hit = builder.named(
        "is_label", builder.create<EqualOp>(classes, builder.expand(labels, -1, type.getShape())));
    if (!ignored) {
      auto scalar = type.clone(ArrayRef<int64_t>());
      count = builder.constant(static_cast<double>(labelType.getNumElements()), scalar);
      return;
    }
    Value none = builder.constant(static_cast<double>(static_cast<int64_t>(*ignored)), labelType);
    counted =
        builder.named("is_counted", builder.create<NotOp>(builder.create<EqualOp>(labels, none)));
    Value ones = builder.cast(counted, type.getElementType());
    count = builder.named("label_count",
                          builder.reduceSum(ones, llvm::to_vector(llvm::seq(labelType.getRank()))));
  }

  /// `rows` with zeros for those that are ignored: selected away, not multiplied by 0, for a
  /// quotient by a count of 0 is infinite.
  Value onlyCounted(Builder &builder, Value rows, StringRef role) const {
    Value zero = builder.constant(0, rows.getType());
    return builder.named(role, counted ? builder.select(counted, rows, zero) : rows);
  }
};

} // namespace

LogicalResult CrossEntropyOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                            const llvm::SmallBitVector &,
                                            SmallVectorImpl<Value> &operandGradients) {
  auto type = getLogits().getType();
  Parts parts(builder, getLogits(), getLabels(), getIgnoreIndex());
  Value row = builder.named("gradient_per_label", builder.div(resultGradients[0], parts.count));
  row = builder.broadcast(row, {}, type.getShape().drop_back());
  row = parts.onlyCounted(builder, row, "row_gradient");
  // One division for each row: the sum is at least 1, since the largest logit's exponential is.
  Value inverse = builder.named("inverse_sum",
                                builder.div(builder.constant(1, parts.sum.getType()), parts.sum));
  Value probability = builder.named(
      "probability", builder.mul(parts.exponentials, builder.expand(inverse, -1, type.getShape())));
  Value difference =
      builder.named("probability_minus_label",
                    builder.sub(probability, builder.cast(parts.hit, type.getElementType())));
  operandGradients.assign(
      {builder.mul(difference, builder.expand(row, -1, type.getShape())), Value()});
  return success();
}

Value CrossEntropyOp::buildCountedShare(Builder &builder) {
  Parts parts(builder, getLogits(), getLabels(), getIgnoreIndex());
  if (!parts.counted)
    return nullptr;
  Value all = builder.constant(static_cast<double>(getLabels().getType().getNumElements()),
                               parts.count.getType());
  return builder.named("counted_share", builder.div(parts.count, all));
}

double CrossEntropyOp::flops() { return 15.0 * getLogits().getType().getNumElements(); }

SmallVector<Value> CrossEntropyOp::decompose(Builder &builder) {
  Parts parts(builder, getLogits(), getLabels(), getIgnoreIndex());
  Value zero = builder.constant(0, getLogits().getType());
  Value picked = builder.named(
      "label_logit", builder.reduceSum(builder.select(parts.hit, parts.shifted, zero), -1));
  Value row = builder.sub(builder.log(parts.sum), picked);
  row = parts.onlyCounted(builder, row, "row_loss");
  Value total = builder.named(
      "total_loss", builder.reduceSum(row, llvm::to_vector(llvm::seq(tensorType(row).getRank()))));
  return {builder.div(total, parts.count)};
}

} // namespace trainc::nn
