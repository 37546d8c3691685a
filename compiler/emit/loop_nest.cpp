// SPDX-License-Identifier: Apache-2.0
//
// The iteration space of a kernel as an emitter walks it.
#include "compiler/emit/loop_nest.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace trainc;

LoopNest::LoopNest(kernel::FunctionOp op) : function(op) {
  ArrayRef<int64_t> dims = op.getDims();
  for (Attribute attribute : op.getAccesses()) {
    auto access = cast<kernel::AccessAttr>(attribute);
    strides.emplace_back(access.getStrides());
    offsets.push_back(access.getOffset());
  }
  sizes.assign(dims.begin(), dims.end());
  outer = op.getForm() == kernel::Form::row      ? dims.size() - op.getReduced()
          : op.getForm() == kernel::Form::column ? op.getReduced()
                                                 : 0;
  dimension.resize(dims.size());
  std::iota(dimension.begin(), dimension.end(), 0);
  merge();
  measure();
  analyse(op.getBody().front(), 0);
}

int64_t LoopNest::points() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

/// Drops unit dimensions and merges contiguous neighbours on one side of the split.
void LoopNest::merge() {
  llvm::SmallVector<bool> indexed(sizes.size(), false);
  function.walk([&](kernel::IndexOp index) { indexed[index.getDimension()] = true; });
  const size_t split = outer;
  SmallVector<int64_t> oldSizes = sizes;
  auto oldStrides = strides;
  sizes.clear();
  for (auto &list : strides)
    list.clear();
  size_t newOuter = 0;
  int previous = -1; // original dimension last kept
  for (size_t d = 0; d < oldSizes.size(); ++d) {
    if (oldSizes[d] == 1) {
      dimension[d] = -1;
      continue;
    }
    bool mergeable = previous >= 0 && (previous < int(split)) == (d < split) && !indexed[d] &&
                     !indexed[previous];
    for (auto &list : oldStrides)
      mergeable &= previous >= 0 && list[previous] == list[d] * oldSizes[d];
    if (mergeable) {
      sizes.back() *= oldSizes[d];
      for (auto [list, old] : llvm::zip(strides, oldStrides))
        list.back() = old[d];
    } else {
      sizes.push_back(oldSizes[d]);
      for (auto [list, old] : llvm::zip(strides, oldStrides))
        list.push_back(old[d]);
      newOuter += d < split;
    }
    dimension[d] = sizes.size() - 1;
    previous = d;
  }
  outer = newOuter;
}

void LoopNest::measure() {
  constexpr int64_t limit = INT32_MAX / 2; // leaves room for a block past the end
  small = points() < limit;
  for (size_t i = 0; i < strides.size(); ++i) {
    int64_t low = offsets[i], high = offsets[i];
    for (auto [stride, size] : llvm::zip(strides[i], sizes))
      (stride < 0 ? low : high) += stride * (size - 1);
    small &= low > -limit && high < limit;
  }
}

void LoopNest::analyse(Block &block, uint64_t outside) {
  for (Operation &op : block) {
    uint64_t mask = outside;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        mask |= masks.lookup(producer);
    auto addBuffer = [&](Value buffer) {
      auto argument = cast<BlockArgument>(buffer);
      for (auto [d, stride] : llvm::enumerate(strides[argument.getArgNumber()]))
        if (stride != 0)
          mask |= uint64_t(1) << d;
    };
    if (auto load = dyn_cast<kernel::LoadOp>(op))
      addBuffer(load.getBuffer());
    else if (auto store = dyn_cast<kernel::StoreOp>(op))
      addBuffer(store.getBuffer());
    else if (auto index = dyn_cast<kernel::IndexOp>(op))
      mask |=
          dimension[index.getDimension()] < 0 ? 0 : uint64_t(1) << dimension[index.getDimension()];
    if (op.getNumRegions() != 0) {
      analyse(op.getRegion(0).front(), 0);
      if (isa<kernel::ReduceOp>(op)) { // one result per row or column
        uint64_t leading = (uint64_t(1) << outer) - 1, all = (uint64_t(1) << sizes.size()) - 1;
        kernel::Form form = function.getForm();
        mask |= reduced | (form == kernel::Form::row      ? leading
                           : form == kernel::Form::column ? all & ~leading
                                                          : 0);
      }
    }
    masks[&op] = mask;
    inferRange(op);
  }
}

void LoopNest::inferRange(Operation &op) {
  if (op.getNumResults() != 1 || !op.getResult(0).getType().isSignlessInteger(64))
    return;
  int64_t low, high;
  auto range = [&](unsigned i, int64_t &a, int64_t &b) {
    auto it = ranges.find(op.getOperand(i));
    if (it == ranges.end())
      return false;
    std::tie(a, b) = it->second;
    return true;
  };
  int64_t a0 = 0, a1 = 0, b0 = 0, b1 = 0;
  if (auto index = dyn_cast<kernel::IndexOp>(op)) {
    low = 0;
    high = function.getDims()[index.getDimension()] - 1;
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    low = high = cast<IntegerAttr>(constant.getValue()).getInt();
  } else if (isa<arith::AddIOp>(op) && range(0, a0, a1) && range(1, b0, b1)) {
    low = a0 + b0;
    high = a1 + b1;
  } else if (isa<arith::SubIOp>(op) && range(0, a0, a1) && range(1, b0, b1)) {
    low = a0 - b1;
    high = a1 - b0;
  } else if (isa<arith::MulIOp>(op) && range(0, a0, a1) && range(1, b0, b1)) {
    low = std::min({a0 * b0, a0 * b1, a1 * b0, a1 * b1});
    high = std::max({a0 * b0, a0 * b1, a1 * b0, a1 * b1});
  } else if (isa<arith::SelectOp>(op) && range(1, a0, a1) && range(2, b0, b1)) {
    low = std::min(a0, b0);
    high = std::max(a1, b1);
  } else {
    return;
  }
  if (low > INT32_MIN && high < INT32_MAX)
    ranges[op.getResult(0)] = {low, high};
}
