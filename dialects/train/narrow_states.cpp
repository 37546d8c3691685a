// SPDX-License-Identifier: Apache-2.0
#include "dialects/train/narrow_states.h"
#include <cmath>

using namespace mlir;

namespace trainc::train {
namespace {

// Multiples of each, without their whole parts, lie evenly in [0, 1): powers of 1/x, where
// x^5 = x + 1 (Roberts 2018, the sequence R4).
constexpr double kOfRow = 0.8566748838545029, kOfColumn = 0.7338918566271260;
constexpr double kOfStep[] = {0.6287067210378087, 0.5385972572236101}; // by slot

/// What stands for a state, and how it is made of it and back.
class NarrowState {
public:
  NarrowState(Update &update, size_t slot) : update(update), b(update.builder()), slot(slot) {}

protected:
  Value constantLike(double number, Value like) { return b.constant(number, like.getType()); }
  Value square(Value x) { return b.mul(x, x); }

  /// A number of [0, 1) for each element, other ones in each step, which lie evenly over the steps
  /// and over the neighbours: of a row and a column, so that a kernel has no integers in its
  /// vectors.
  Value draw() {
    RankedTensorType type = nn::tensorType(update.parameter);
    const int64_t rows = type.getShape()[0], columns = type.getShape()[1];
    auto fraction = [&](Value x) { return b.sub(x, b.create<nn::FloorOp>(x)); };
    Value step = update.scalar("step"),
          ofStep = b.broadcast(b.scale(step, kOfStep[slot]), {}, {rows});
    Value row = b.create<nn::IotaOp>(RankedTensorType::get({rows}, b.op().getI64Type()), 0);
    Value ofRow = b.scale(b.cast(row, b.op().getF64Type()), kOfRow);
    Value begin = b.cast(fraction(b.add(ofRow, ofStep)), type.getElementType());
    SmallVector<float> columnParts;
    for (int64_t i = 0; i < columns; ++i) {
      const double part = static_cast<double>(i) * kOfColumn;
      columnParts.push_back(static_cast<float>(part - std::floor(part)));
    }
    Value ofColumn =
        b.named("shares_of_columns",
                b.constant(DenseElementsAttr::get(
                    RankedTensorType::get({columns}, b.op().getF32Type()), ArrayRef(columnParts))));
    return fraction(b.add(b.broadcast(begin, {0}, type.getShape()),
                          b.broadcast(ofColumn, {1}, type.getShape())));
  }

  Update &update;
  nn::Builder &b;
  size_t slot;
};

class Bf16State : NarrowState {
public:
  using NarrowState::NarrowState;

  Value decoded(Value state) {
    return b.cast(state, nn::tensorType(update.parameter).getElementType());
  }

  Value encoded(Value value) {
    Type wide = nn::tensorType(value).getElementType(), narrow = b.op().getBF16Type();
    auto rounded = [&](Value x) { return b.cast(b.cast(x, narrow), wide); };
    // A bit more than half of the steps around it, so the nearest to the sum is the next one.
    constexpr double beyondHalf = 0x1.02p-8;
    Value nearest = rounded(value), rest = b.sub(value, nearest);
    Value away = b.scale(b.create<nn::AbsOp>(nearest), beyondHalf);
    Value zero = constantLike(0, rest);
    Value step = b.select(b.create<nn::LessOp>(rest, zero), b.neg(away), away);
    Value next = rounded(b.add(nearest, step));
    Value share = b.div(rest, b.sub(next, nearest)); // not a number where there is no rest
    Value chosen = b.select(b.create<nn::LessOp>(draw(), share), next, nearest);
    return b.cast(chosen, narrow);
  }
};

class CodedState : NarrowState {
public:
  CodedState(Update &update, size_t slot, bool isSquare)
      : NarrowState(update, slot), isSquare(isSquare), most(isSquare ? 255 : 127) {}

  Value decoded(Value codes, Value scales) {
    Value code = b.cast(codes, nn::tensorType(update.parameter).getElementType());
    Value power = isSquare ? square(square(code)) : b.mul(code, b.create<nn::AbsOp>(code));
    return b.mul(b.scale(power, 1 / largestPower()), inBlocks(scales, power));
  }

  /// The codes, and the blocks' scales.
  std::pair<Value, Value> encoded(Value value) {
    Value size = isSquare ? value : b.create<nn::AbsOp>(value);
    Value scale = b.reduceMax(size, {1}), zero = constantLike(0, scale);
    Value divisor = b.select(b.create<nn::GreaterOp>(scale, zero), scale, constantLike(1, scale));
    Value power = b.scale(b.div(size, inBlocks(divisor, size)), largestPower());
    Value root = b.create<nn::SqrtOp>(isSquare ? b.create<nn::SqrtOp>(power) : power);
    Value low = b.create<nn::FloorOp>(root), one = constantLike(1, low), high = b.add(low, one);
    auto raised = [&](Value code) { return isSquare ? square(square(code)) : square(code); };
    Value below = raised(low), above = raised(high);
    Value share = b.div(b.sub(power, below), b.sub(above, below));
    Value code = b.select(b.create<nn::LessOp>(draw(), share), high, low);
    if (!isSquare) {
      Value isNegative = b.create<nn::LessOp>(value, constantLike(0, value));
      code = b.select(isNegative, b.neg(code), code);
    }
    code = b.create<nn::MinimumOp>(code, constantLike(most, code));
    code = b.create<nn::MaximumOp>(code, constantLike(isSquare ? 1 : -most, code));
    return {b.cast(code, elementTypeOf(element(isSquare), b.op().getF32Type())), scale};
  }

  static StateElement element(bool isSquare) {
    return isSquare ? StateElement::ui8 : StateElement::i8;
  }

private:
  double largestPower() const { return std::pow(most, isSquare ? 4 : 2); }
  Value inBlocks(Value scales, Value like) {
    return b.broadcast(scales, {0}, nn::tensorType(like).getShape());
  }

  bool isSquare;
  double most; // of the codes
};

} // namespace

Optimizer withBf16States(Optimizer optimizer) {
  optimizer.kinds.assign(optimizer.states.size(), {StateElement::bf16, 1});
  optimizer.row = kStateBlock;
  optimizer.build = [build = optimizer.build, names = optimizer.states](Update &update) {
    SmallVector<Value> wide;
    for (auto [slot, state] : llvm::enumerate(update.states))
      wide.push_back(Bf16State(update, slot).decoded(state));
    Update own = update.with(wide);
    UpdateResult result = build(own);
    for (auto [slot, state] : llvm::enumerate(result.states))
      state = update.builder().named(names[slot], Bf16State(update, slot).encoded(state));
    return result;
  };
  return optimizer;
}

Optimizer with8BitStates(Optimizer optimizer) {
  const std::vector<std::string> names = optimizer.states;
  const std::vector<bool> squares = optimizer.squares;
  const size_t count = names.size();
  for (size_t slot = 0; slot < count; ++slot)
    optimizer.kinds.push_back({CodedState::element(squares[slot]), 1});
  for (const std::string &name : names) {
    optimizer.states.push_back(name + "_scale");
    optimizer.kinds.push_back({StateElement::ofParameter, kStateBlock});
  }
  optimizer.row = kStateBlock;
  optimizer.build = [build = optimizer.build, names, squares, count](Update &update) {
    SmallVector<Value> wide;
    for (size_t slot = 0; slot < count; ++slot)
      wide.push_back(CodedState(update, slot, squares[slot])
                         .decoded(update.states[slot], update.states[count + slot]));
    Update own = update.with(wide);
    UpdateResult result = build(own);
    for (size_t slot = 0; slot < count; ++slot) {
      auto [codes, scale] = CodedState(update, slot, squares[slot]).encoded(result.states[slot]);
      result.states[slot] = update.builder().named(names[slot], codes);
      result.states.push_back(update.builder().named(names[slot] + "_scale", scale));
    }
    return result;
  };
  return optimizer;
}

} // namespace trainc::train
