// SPDX-License-Identifier: Apache-2.0
//
// What the dimensions of a kernel are to its body (loop_nest.h).
#include "dialects/kernel/loop_nest.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace trainc;

unsigned trainc::argumentOf(Operation *access) {
  auto load = dyn_cast<kernel::LoadOp>(access);
  Value buffer = load ? load.getBuffer() : cast<kernel::StoreOp>(access).getBuffer();
  return cast<BlockArgument>(buffer).getArgNumber();
}

LoopNest::LoopNest(kernel::FunctionOp op) : function(op), sizes(op.getDims()) {
  for (auto access : op.getAccesses().getAsRange<kernel::AccessAttr>()) {
    strides.push_back(access.getStrides());
    offsets.push_back(access.getOffset());
  }
  kernel::Form form = op.getForm();
  if (form == kernel::Form::row)
    outer = sizes.size() - op.getReduced();
  else if (form == kernel::Form::column)
    outer = op.getReduced();
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool leads = d < outer;
    bool isKept = form == kernel::Form::pointwise || (form == kernel::Form::row && leads) ||
                  (form == kernel::Form::column && !leads);
    (isKept ? kept : walked).push_back(d);
  }
  measure();
  analyse(op.getBody().front());
}

int64_t LoopNest::points() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

int64_t LoopNest::points(ArrayRef<size_t> dimensions) const {
  int64_t count = 1;
  for (size_t d : dimensions)
    count *= sizes[d];
  return count;
}

uint64_t LoopNest::bits(ArrayRef<size_t> dimensions) {
  uint64_t mask = 0;
  for (size_t d : dimensions)
    mask |= bit(d);
  return mask;
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

/// What an operation adds to the dependences of its operands.
uint64_t LoopNest::ownDependence(Operation &op) const {
  if (auto index = dyn_cast<kernel::IndexOp>(op))
    return bit(index.getDimension());
  if (isa<kernel::ReduceOp>(op)) // one result per row or column
    return reduced | bits(kept);
  if (!isa<kernel::LoadOp, kernel::StoreOp>(op))
    return 0;
  uint64_t mask = 0;
  for (auto [d, stride] : llvm::enumerate(strides[argumentOf(&op)]))
    if (stride != 0)
      mask |= bit(d);
  return mask;
}

void LoopNest::analyse(Block &block) {
  for (Operation &op : block) {
    if (op.getNumRegions() != 0)
      analyse(op.getRegion(0).front());
    uint64_t mask = ownDependence(op);
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        mask |= masks.lookup(producer);
    masks[&op] = mask;
    inferRange(op);
  }
}

kernel::ReduceOp LoopNest::onlyReduction() const {
  kernel::FunctionOp kernelFunction = function;
  kernel::ReduceOp found;
  for (Operation &op : kernelFunction.getBody().front()) {
    if (op.getNumRegions() == 0)
      continue;
    if (found || !isa<kernel::ReduceOp>(op))
      return {};
    found = cast<kernel::ReduceOp>(op);
  }
  bool standsAlone = bool(found);
  if (found)
    for (Operation &op : found.getBody().front())
      for (Value operand : op.getOperands())
        if (Operation *producer = operand.getDefiningOp())
          standsAlone &= producer->getParentOp() == found || dependence(producer) == 0;
  return standsAlone ? found : kernel::ReduceOp();
}

bool LoopNest::isVector(Operation *access, int64_t width) const {
  if (!isa<kernel::LoadOp, kernel::StoreOp>(access))
    return false;
  unsigned argument = argumentOf(access);
  ArrayRef<int64_t> own = strides[argument];
  if (own.empty() || own.back() != 1 || offsets[argument] % width != 0 ||
      llvm::any_of(own.drop_back(), [&](int64_t stride) { return stride % width != 0; }))
    return false;
  auto load = dyn_cast<kernel::LoadOp>(access);
  if (!load)
    return true;
  if (load.getPredicate())
    return false;
  if (!load.getIndex())
    return true;
  Operation *index = load.getIndex().getDefiningOp();
  return static_cast<int64_t>(load.getIndexStride()) % width == 0 && index &&
         (dependence(index) & bit(own.size() - 1)) == 0;
}

void LoopNest::inferRange(Operation &op) {
  if (op.getNumResults() != 1 || !isa<IntegerType>(op.getResult(0).getType()) ||
      op.getResult(0).getType().isInteger(1))
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
  } else if (auto random = dyn_cast<kernel::RandomBitsOp>(op)) {
    if (random.getBits() > 31)
      return;
    low = 0;
    high = (int64_t(1) << random.getBits()) - 1;
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
