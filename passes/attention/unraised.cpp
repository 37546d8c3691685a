// SPDX-License-Identifier: Apache-2.0
//
// Attention that stays written out (unraised.h).
#include "passes/attention/unraised.h"
#include "dialects/nn/raised_pattern.h"
#include "dialects/nn/views.h"
#include "passes/attention/written_dropout.h"

using namespace mlir;

namespace trainc {
namespace {

constexpr int kFarthest = 12; // operations between a product and the softmax

bool changesElements(Operation *op) {
  return isa<nn::PointwiseOpInterface, nn::TrainingFormOp, nn::CastOp, nn::ConcatOp>(op);
}

/// Computed, not a parameter or a constant: of a view, of what it is a view of.
bool isComputed(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.getDefiningOp() && !value.getDefiningOp<nn::ConstantOp>();
}

/// Whether the scores come from a product of queries and keys.
bool leadsToScores(Value value, int depth = 0) {
  Operation *op = value.getDefiningOp();
  if (auto product = dyn_cast_or_null<nn::MatmulOp>(op))
    return isComputed(product.getA()) && isComputed(product.getB());
  return op && depth < kFarthest && (isView(op) || changesElements(op)) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return leadsToScores(operand, depth + 1); });
}

bool isRandom(Value value, int depth = 0) {
  Operation *op = value.getDefiningOp();
  return op && (isa<nn::RandomBitsOp>(op) ||
                (depth < kFarthest && (isView(op) || changesElements(op)) &&
                 llvm::any_of(op->getOperands(),
                              [&](Value operand) { return isRandom(operand, depth + 1); })));
}

/// What stands between weights and their product with values.
struct WayToProduct {
  bool hasDropout = false;
  Operation *change = nullptr; // another one
};

/// After a dropout that raise-attention knows.
Value afterDropout(Value weights) {
  std::optional<WrittenDropout> dropout = writtenDropout(weights);
  return dropout ? dropout->result.getResult() : weights;
}

std::optional<WayToProduct> wayToProduct(Value weights, int depth = 0) {
  if (depth == kFarthest)
    return std::nullopt;
  weights = afterDropout(weights);
  for (Operation *user : weights.getUsers()) {
    if (auto product = dyn_cast<nn::MatmulOp>(user)) {
      if (isComputed(product.getA()) && isComputed(product.getB()))
        return WayToProduct();
      continue;
    }
    if (!isView(user) && !changesElements(user))
      continue;
    std::optional<WayToProduct> way = wayToProduct(user->getResult(0), depth + 1);
    if (!way)
      continue;
    bool drops = llvm::any_of(user->getOperands(), [](Value operand) { return isRandom(operand); });
    way->hasDropout |= drops;
    if (!drops && !isView(user) && !way->change)
      way->change = user;
    return way;
  }
  return std::nullopt;
}

std::string mnemonicOf(Operation *op) { return op->getName().stripDialect().str(); }

/// What raise-attention does not follow from the softmax to the product.
std::string whyNotScores(Value value) {
  for (Operation *op = value.getDefiningOp();; op = value.getDefiningOp()) {
    if (!value.hasOneUse())
      return "its scores are read elsewhere, too";
    if (isa<nn::MatmulOp>(op))
      return "its masks hide keys by numbers that are not infinite, or its shapes do not fit";
    if (isa<nn::MulOp, nn::DivOp>(op) && !nn::splatOfFloats(op->getOperand(1)) &&
        !nn::splatOfFloats(op->getOperand(0)))
      return "its scores are scaled by a tensor";
    if (!isa<nn::ReshapeOp, nn::MulOp, nn::DivOp, nn::AddOp, nn::SelectOp>(op))
      return "its scores go through " + mnemonicOf(op);
    auto next =
        llvm::find_if(op->getOperands(), [](Value operand) { return leadsToScores(operand); });
    value = *next;
  }
}

} // namespace

std::string whyWrittenOut(nn::SoftmaxOp softmax) {
  std::optional<WayToProduct> way = wayToProduct(softmax.getResult());
  if (!way || !leadsToScores(softmax.getX()))
    return "";
  if (way->hasDropout)
    return "its weights have a dropout that is written by hand";
  if (way->change)
    return "its weights go through " + mnemonicOf(way->change);
  Value weights = softmax.getResult();
  return weights.hasOneUse() || afterDropout(weights) != weights
             ? whyNotScores(softmax.getX())
             : "its weights are read elsewhere, too";
}

} // namespace trainc
