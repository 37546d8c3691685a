// SPDX-License-Identifier: Apache-2.0
//
// Roots by the bytes they move (fusion_roots.h).
#include "passes/kernels/fusion_roots.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/reduction.h"
#include "passes/kernels/value_views.h"
#include "passes/plans/tensor_places.h"

using namespace mlir;

namespace trainc {

constexpr double largestExpression = 128; // flops: half of what a kernel holds (FusionOptions)
constexpr double storingOverhead = 1.125; // a stored value may need a kernel that it has to itself
constexpr int largestScalars = 16;        // likewise, values alive in it
constexpr size_t largestTensors = 32; // that an expression reads: streams that are fetched ahead

bool isStep(Operation *op) { return isa<kernel::StepOpInterface>(op); }

/// In memory before any kernel of the group runs: argument, step's result, table of constants.
bool isInMemory(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || isStep(op) || (isa<nn::ConstantOp>(op) && !isSplatConstant(op));
}

double flopsPerElement(Operation *op) {
  auto cost = dyn_cast<nn::CostOpInterface>(op);
  return cost ? cost.flopsPerElement() : 0;
}

double bytesRead(Value tensor, Value value) {
  int64_t elements =
      std::min(planning::elementCount(sizesOf(value)), planning::elementCount(sizesOf(tensor)));
  return double(elements * elementBytes(nn::tensorType(tensor).getElementType()));
}

double ExpressionCost::again(Value value) const {
  return flops * double(planning::elementCount(sizesOf(value))) / flopsPerByte + 2 * gathered;
}

FusionRoots::FusionRoots(Block &block, bool storesLittle)
    : block(block), storesLittle(storesLittle) {
  const size_t count = block.getOperations().size(); // growing tables would move them all
  users.reserve(count);
  costs.reserve(count);
  numbers.reserve(count);
  countUsers();
  markForced();
}

void FusionRoots::countUsers() {
  for (Operation &op : llvm::reverse(block)) {
    int count = 0;
    llvm::SmallPtrSet<Operation *, 4> seen;
    for (Operation *user : op.getUsers())
      if (seen.insert(user).second)
        count += isView(user) ? users.lookup(user) : 1;
    users[&op] = count;
  }
}

void FusionRoots::markForced() {
  for (Operation &op : block)
    if (isStep(&op) || op.hasTrait<OpTrait::IsTerminator>())
      for (Value operand : op.getOperands())
        if (!isInMemory(operand))
          forced.insert(operand.getDefiningOp());
}

ExpressionCost FusionRoots::expressionOf(Operation *op) const {
  ExpressionCost cost;
  cost.flops = flopsPerElement(op);
  if (isa<nn::GatherOp>(op))
    cost.gathered = double(bytesOf(op->getResult(0).getType()));
  SmallVector<int, 4> needs;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (isInMemory(operand) || numbers.contains(source)) {
      cost.read(operand);
      needs.push_back(1);
      continue;
    }
    const ExpressionCost &inner = costOf(source);
    cost.flops += inner.flops;
    cost.gathered += inner.gathered;
    needs.push_back(inner.scalars);
    for (Value tensor : inner.leaves)
      cost.read(tensor);
  }
  llvm::sort(needs, std::greater<int>()); // the one that needs most comes first
  for (auto [i, need] : llvm::enumerate(needs))
    cost.scalars = std::max(cost.scalars, need + int(i));
  return cost;
}

/// The value has several users: whether to keep it or to compute it again for each.
bool FusionRoots::storingIsCheaper(Operation *op, const ExpressionCost &cost) const {
  double repetitions = users.lookup(op) - 1;
  if (repetitions < 1)
    return false;
  Value value = op->getResult(0);
  double again = cost.again(value);
  for (Value tensor : cost.leaves) {
    // Arguments and constants are held anyway.
    Operation *source = tensor.getDefiningOp();
    bool made = source && !isa<nn::ConstantOp>(source);
    again += (made ? 1 + 1 / repetitions : 1) * bytesRead(tensor, value);
  }
  double stored = double(bytesOf(value.getType()));
  return storingOverhead * stored * (repetitions + 2) <= again * repetitions;
}

/// Computed per row (or once) and repeated: at every point where it is not a root.
static bool isRepeated(Operation *op, const ExpressionCost &cost) {
  if (cost.flops == 0)
    return false;
  Value value = op->getResult(0);
  double stored = 2 * double(bytesOf(value.getType())); // written and read
  SmallVector<Operation *> below(op->getUsers());
  while (!below.empty()) {
    Operation *user = below.pop_back_val();
    if (!isView(user))
      continue;
    int64_t points = planning::elementCount(sizesOf(user->getResult(0)));
    if (points > planning::elementCount(sizesOf(value)) &&
        cost.flops * double(points) / flopsPerByte >= stored)
      return true;
    below.append(user->user_begin(), user->user_end());
  }
  return false;
}

bool FusionRoots::deservesRoot(Operation *op, const ExpressionCost &cost) const {
  if (nn::isReduction(op) || forced.contains(op))
    return true;
  if (isView(op) || isa<nn::ConstantOp, nn::IotaOp>(op) ||
      (storesLittle && planning::elementCount(sizesOf(op->getResult(0))) > 1))
    return false;
  return cost.flops > largestExpression || cost.scalars > largestScalars ||
         cost.leaves.size() > largestTensors ||
         (!repeated.contains(op) && (storingIsCheaper(op, cost) || isRepeated(op, cost)));
}

void FusionRoots::choose() {
  numbers.clear();
  roots.clear();
  costs.clear();
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>() || (isa<nn::ConstantOp>(op) && !isSplatConstant(&op)))
      continue;
    bool root = isStep(&op);
    if (!root) {
      ExpressionCost cost = expressionOf(&op);
      root = users.lookup(&op) > 0 && deservesRoot(&op, cost);
      costs[&op] = std::move(cost);
    }
    if (root) {
      numbers[&op] = int(roots.size());
      roots.push_back(&op);
    }
  }
}

} // namespace trainc
