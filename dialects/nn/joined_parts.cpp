// SPDX-License-Identifier: Apache-2.0
#include "dialects/nn/joined_parts.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace trainc::nn {
namespace {

/// The only reader, through casts; null where there are more.
Operation *readerThroughCasts(Value value) {
  while (value.hasOneUse()) {
    Operation *reader = *value.user_begin();
    if (!isa<CastOp>(reader))
      return reader;
    value = reader->getResult(0);
  }
  return nullptr;
}

/// The one dimension along which it adds zeros; nothing where there are several.
std::optional<size_t> paddedDimension(PadOp pad) {
  std::optional<size_t> found;
  for (size_t d = 0; d < pad.getLow().size(); ++d) {
    if (pad.getInterior()[d] != 0)
      return std::nullopt;
    if (pad.getLow()[d] == 0 && pad.getHigh()[d] == 0)
      continue;
    if (found)
      return std::nullopt;
    found = d;
  }
  return found;
}

/// The sum of all these and of nothing else; null where there is none.
Value sumOf(ArrayRef<PadOp> pads) {
  llvm::SmallPtrSet<Operation *, 4> added(pads.begin(), pads.end());
  // A sum of two of what is added is one of what is added.
  Value sum;
  for (size_t left = pads.size(); left > 1;) {
    Operation *next = nullptr;
    for (Operation *op : added) {
      auto add = dyn_cast_or_null<AddOp>(readerThroughCasts(op->getResult(0)));
      if (!add)
        return Value();
      auto isAdded = [&](Value value) {
        while (auto cast = value.getDefiningOp<CastOp>())
          value = cast.getX();
        return added.contains(value.getDefiningOp());
      };
      if (add.getA() != add.getB() && isAdded(add.getA()) && isAdded(add.getB())) {
        next = add;
        break;
      }
    }
    if (!next)
      return Value();
    for (Value operand : next->getOperands()) {
      while (auto cast = operand.getDefiningOp<CastOp>())
        operand = cast.getX();
      added.erase(operand.getDefiningOp());
    }
    added.insert(next);
    --left;
    sum = next->getResult(0);
  }
  return sum;
}

} // namespace

std::optional<JoinedParts> joinedParts(ArrayRef<Value> parts) {
  SmallVector<PadOp> pads;
  std::optional<size_t> dimension;
  for (Value part : parts) {
    auto pad = part.hasOneUse() ? dyn_cast<PadOp>(*part.user_begin()) : PadOp();
    std::optional<size_t> own = pad ? paddedDimension(pad) : std::nullopt;
    if (!own || (dimension && own != dimension) ||
        pad.getType() != parts.front().user_begin()->getResult(0).getType())
      return std::nullopt;
    dimension = own;
    pads.push_back(pad);
  }
  if (pads.size() < 2)
    return std::nullopt;
  JoinedParts joined;
  joined.type = cast<RankedTensorType>(pads.front().getType());
  int64_t inner = 1; // elements of one place along the dimension
  for (int64_t size : joined.type.getShape().drop_front(*dimension + 1))
    inner *= size;
  joined.length = joined.type.getDimSize(*dimension) * inner;
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (PadOp pad : pads) {
    joined.begins.push_back(pad.getLow()[*dimension] * inner);
    joined.lengths.push_back(pad.getX().getType().getDimSize(*dimension) * inner);
    ranges.emplace_back(joined.begins.back(), joined.begins.back() + joined.lengths.back());
  }
  llvm::sort(ranges);
  int64_t end = 0;
  for (auto [first, last] : ranges) {
    if (first != end)
      return std::nullopt;
    end = last;
  }
  if (end != joined.length)
    return std::nullopt;
  joined.whole = sumOf(pads);
  return joined.whole ? std::optional(joined) : std::nullopt;
}

} // namespace trainc::nn
