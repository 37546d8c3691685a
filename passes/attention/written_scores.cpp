// SPDX-License-Identifier: Apache-2.0
//
// Scores of attention as a model writes them (written_scores.h).
#include "passes/attention/written_scores.h"
#include "dialects/nn/raised_pattern.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace trainc {
namespace {

// What hides a key as well as -infinity does where the query surely sees another one: exp of the
// difference is 0.
constexpr double kHides = -1e4;
// What no score changes that is added to it: so adding it is the same as putting it in its place.
constexpr double kSwallows = -1e30;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The operand of `op` that is no number, and the number.
std::optional<std::pair<Value, double>> besideNumber(Operation *op, unsigned a, unsigned b) {
  auto first = nn::splatOfFloats(op->getOperand(a)), second = nn::splatOfFloats(op->getOperand(b));
  if (first.has_value() == second.has_value())
    return std::nullopt;
  return first ? std::pair(op->getOperand(b), *first) : std::pair(op->getOperand(a), *second);
}

bool leadsToProduct(Value value) {
  constexpr int kFar = 16;
  for (int i = 0; i < kFar; ++i) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<nn::MatmulOp>(op))
      return true;
    if (isa_and_nonnull<nn::ReshapeOp>(op))
      value = op->getOperand(0);
    else if (auto scaled =
                 isa_and_nonnull<nn::MulOp, nn::DivOp>(op) ? besideNumber(op, 0, 1) : std::nullopt)
      value = scaled->first;
    else if (auto chosen =
                 isa_and_nonnull<nn::SelectOp>(op) ? besideNumber(op, 1, 2) : std::nullopt)
      value = chosen->first;
    else if (auto add = dyn_cast_or_null<nn::AddOp>(op))
      return leadsToProduct(add.getA()) || leadsToProduct(add.getB());
    else
      return false;
  }
  return false;
}

class Reading {
public:
  std::optional<WrittenScores> read(Value value) {
    while (value.hasOneUse()) {
      Operation *op = value.getDefiningOp();
      scores.passed.push_back(op);
      if (auto product = dyn_cast_or_null<nn::MatmulOp>(op)) {
        scores.product = product;
        std::reverse(scores.masks.begin(), scores.masks.end());
        return scores;
      }
      value = op ? step(op) : Value();
      if (!value)
        break;
    }
    return std::nullopt;
  }

private:
  /// The scores before `op`.
  Value step(Operation *op) {
    if (auto reshape = dyn_cast<nn::ReshapeOp>(op))
      return reshape.getX();
    if (isa<nn::MulOp>(op))
      if (auto scaled = besideNumber(op, 0, 1))
        return scale(scaled->first, scaled->second);
    if (isa<nn::DivOp>(op))
      if (auto by = nn::splatOfFloats(op->getOperand(1)))
        return scale(op->getOperand(0), 1 / *by);
    if (auto add = dyn_cast<nn::AddOp>(op))
      return added(add);
    if (auto select = dyn_cast<nn::SelectOp>(op))
      return selected(select);
    return nullptr;
  }

  Value scale(Value before, double by) {
    scores.scale *= by;
    return by > 0 && std::isfinite(by) ? before : Value();
  }

  Value added(nn::AddOp op) {
    bool isFirst = leadsToProduct(op.getA());
    if (isFirst == leadsToProduct(op.getB()) || scores.scale != 1)
      return nullptr;
    pushAddends(isFirst ? op.getB() : op.getA());
    return isFirst ? op.getA() : op.getB();
  }

  /// The mask, or its parts where these are smaller.
  void pushAddends(Value value) {
    auto add = value.getDefiningOp<nn::AddOp>();
    int64_t parts =
        add ? std::max(elementsWithoutRepetition(add.getA()), elementsWithoutRepetition(add.getB()))
            : 0;
    if (add && parts < elementsWithoutRepetition(value)) {
      pushAddends(add.getB());
      pushAddends(add.getA());
      return;
    }
    WrittenMask mask;
    mask.value = value;
    llvm::append_range(mask.shape, nn::tensorType(value).getShape());
    mask.keys = hiddenBy(value);
    scores.masks.push_back(mask);
  }

  Value selected(nn::SelectOp op) {
    auto chosen = besideNumber(op, 1, 2);
    if (!chosen || scores.scale != 1 || !(chosen->second <= kHides))
      return nullptr;
    WrittenMask mask;
    mask.value = op.getCondition();
    llvm::append_range(mask.shape, op.getType().getShape());
    mask.isCondition = true;
    mask.holdsForSeen = chosen->first == op.getA();
    mask.score = chosen->second;
    if (auto reach = reachOf(mask.value, mask.holdsForSeen))
      mask.keys = HiddenKeys{*reach, mask.score};
    scores.masks.push_back(mask);
    return chosen->first;
  }

  WrittenScores scores;
};

} // namespace

std::optional<WrittenScores> writtenScores(Value value) { return Reading().read(value); }

std::optional<int64_t> takeReach(SmallVectorImpl<WrittenMask> &masks) {
  std::optional<int64_t> reach;
  for (size_t i = masks.size(); i-- > 0;) {
    const std::optional<HiddenKeys> &keys = masks[i].keys;
    bool isAlone = masks.size() == 1 && !reach;
    // -infinity always hides; another number does where a key is surely seen.
    if (!keys ||
        !(keys->score == -kInfinity || (keys->score <= kHides && keys->reach >= 0 && isAlone)))
      continue;
    reach = std::min(reach.value_or(keys->reach), keys->reach);
    masks.erase(masks.begin() + i);
  }
  return reach;
}

bool canBeAdded(ArrayRef<WrittenMask> masks) {
  // Two such numbers make -infinity: a key that both hide would differ from those that one hides
  // where a query sees none.
  for (auto [i, mask] : llvm::enumerate(masks))
    if (mask.isCondition && mask.score != -kInfinity && (i > 0 || mask.score > kSwallows))
      return false;
  return true;
}

} // namespace trainc
