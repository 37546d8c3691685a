// SPDX-License-Identifier: Apache-2.0
//
// Forward is what the results that are not gradients come from: the loss, outputs, new values of
// buffers (forward_part.h).
#include "passes/recompute/forward_part.h"
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/names/recomputed_name.h"
#include "dialects/nn/reduction.h"
#include "dialects/nn/views.h"
#include "dialects/train/train.h"
#include "mlir/IR/IRMapping.h"
#include "passes/kernels/fusion_roots.h"
#include "passes/planning/fusion_groups.h"
#include "passes/plans/tensor_places.h"
#include "runtime/name_pattern.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace trainc {

llvm::DenseSet<Operation *> operationsFor(func::FuncOp function,
                                          llvm::function_ref<bool(unsigned)> isWanted) {
  Block &block = function.front();
  llvm::DenseSet<Operation *> found;
  auto add = [&](Value value) {
    if (Operation *maker = value.getDefiningOp())
      found.insert(maker);
  };
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (isWanted(result.getOperandNumber()))
      add(result.get());
  for (Operation &op : llvm::reverse(block))
    if (found.contains(&op))
      llvm::for_each(op.getOperands(), add);
  return found;
}

namespace {

/// In program order, without constants, which are always at hand; none where nothing is a gradient.
SmallVector<Operation *> forwardOperations(func::FuncOp function) {
  auto isGradient = [&](unsigned result) {
    return bool(train::resultRoleAs<train::GradientAttr>(function, result));
  };
  SmallVector<Operation *> operations;
  if (llvm::none_of(llvm::seq(function.getNumResults()), isGradient))
    return operations;
  llvm::DenseSet<Operation *> found = operationsFor(function, std::not_fn(isGradient));
  for (Operation &op : function.front())
    if (found.contains(&op) && !isa<nn::ConstantOp>(op))
      operations.push_back(&op);
  return operations;
}

} // namespace

ForwardPart::ForwardPart(func::FuncOp function, StringRef pattern) {
  std::string why;
  std::optional<name_pattern> nodes = name_pattern::parse(pattern, why);
  check(nodes.has_value(), function, "the pattern of nodes was not checked: " + why);
  for (Operation *op : forwardOperations(function)) {
    addOperation(op);
    NodeName name = nodeName(op->getLoc());
    forward.operations.back().isForced =
        !pattern.empty() && !name.node.empty() && nodes->matches(name.node);
  }
  addUses(function);
}

void ForwardPart::addOperation(Operation *op) {
  planning::ForwardOperation operation;
  for (Value operand : op->getOperands())
    if (auto known = values.find(operand); known != values.end())
      operation.reads.push_back(known->second);
  operation.time = trafficOf(op, symbols);
  auto step = dyn_cast<kernel::StepOpInterface>(op);
  operation.isRepeatable = !step || !step.isOrdered();
  for (OpResult result : op->getResults()) {
    if (auto taken = step ? step.operandTaken(result.getResultNumber()) : std::nullopt)
      if (auto known = values.find(op->getOperand(*taken)); known != values.end())
        forward.values[known->second].mayBeKept = false;
    values[result] = int(forward.values.size());
    operation.makes.push_back(int(forward.values.size()));
    forward.values.push_back({bytesOf(result.getType())});
  }
  operations.push_back(op);
  forward.operations.push_back(std::move(operation));
}

double trafficOf(Operation *op, SymbolTableCollection &symbols) {
  constexpr double launch = planning::FusionOptions().launchBytes;
  if (auto step = dyn_cast<kernel::StepOpInterface>(op)) {
    kernel::StepCost cost = step.cost(symbols);
    return cost.flops / flopsPerByte + double(cost.bytes()) + launch;
  }
  auto cost = dyn_cast<nn::CostOpInterface>(op);
  double time = cost ? cost.flops() / flopsPerByte : 0;
  if (nn::isReduction(op))
    return time + double(bytesOf(op->getOperand(0).getType())) + launch;
  double bytes = double(bytesOf(op->getResult(0).getType()));
  if (isa<nn::GatherOp>(op))
    time += 2 * bytes;
  if (isView(op))
    return time;
  SmallVector<Operation *> readers(op->user_begin(), op->user_end());
  for (size_t i = 0; i < readers.size(); ++i) // grows: through views
    if (isStep(readers[i]))
      return time + 2 * bytes + launch;
    else if (isView(readers[i]))
      readers.append(readers[i]->user_begin(), readers[i]->user_end());
  return time;
}

Operation *ForwardPart::forcedInVain() const {
  for (auto [op, operation] : llvm::zip(operations, forward.operations))
    if (operation.isForced && !operation.isRepeatable)
      return op;
  return nullptr;
}

void ForwardPart::addUses(func::FuncOp function) {
  llvm::DenseSet<Operation *> isForward(operations.begin(), operations.end());
  DenseMap<Operation *, int> stepsBefore;
  int steps = 0;
  for (Operation &op : function.front()) {
    stepsBefore[&op] = steps;
    steps += isStep(&op);
  }
  for (auto [value, number] : values) {
    planning::ForwardValue &described = forward.values[number];
    int lastForward = stepsBefore[value.getDefiningOp()], firstBackward = steps;
    SmallVector<OpOperand *> uses;
    auto addUsesOf = [&](Value read) {
      for (OpOperand &use : read.getUses())
        uses.push_back(&use);
    };
    addUsesOf(value);
    for (size_t i = 0; i < uses.size(); ++i) { // grows: through views
      Operation *reader = uses[i]->getOwner();
      if (reader->hasTrait<OpTrait::IsTerminator>()) {
        unsigned result = uses[i]->getOperandNumber();
        described.isKeptAnyway |= hasPlaceOfItsOwn(function, result) ||
                                  train::resultRoleAs<train::OutputAttr>(function, result);
      } else if (isForward.contains(reader)) {
        lastForward = std::max(lastForward, stepsBefore[reader] + isStep(reader));
        if (isView(reader))
          addUsesOf(reader->getResult(0));
      } else {
        described.isNeeded |= uses[i]->get() == value;
        firstBackward = std::min(firstBackward, stepsBefore[reader]);
      }
    }
    // Nothing runs between forward and backward pass: the logits of a loss, say.
    described.isKeptAnyway |= described.isNeeded && firstBackward <= lastForward;
  }
}

/// What the backward pass computes of forward values alone, such as derivatives of activations,
/// moves to where it is read: it may stand in front of the whole backward pass.
static void sinkDerivatives(Block &block, const llvm::DenseSet<Operation *> &isForward) {
  llvm::DenseSet<Operation *> isOfForward(isForward);
  DenseMap<Operation *, size_t> places; // a moved one has its reader's
  SmallVector<Operation *> fronts;      // of what has one place
  for (Operation &op : block) {
    places[&op] = fronts.size();
    fronts.push_back(&op);
    auto isMade = [&](Value operand) {
      Operation *maker = operand.getDefiningOp();
      return !maker || isOfForward.contains(maker);
    };
    if (!isStep(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
        llvm::all_of(op.getOperands(), isMade))
      isOfForward.insert(&op);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isOfForward.contains(&op) || isForward.contains(&op) || op.use_empty() ||
        isa<nn::ConstantOp>(op))
      continue;
    size_t place = fronts.size();
    for (Operation *user : op.getUsers())
      place = std::min(place, places[user]);
    places[&op] = place;
    op.moveBefore(fronts[place]);
    fronts[place] = &op;
  }
}

void ForwardPart::repeat(func::FuncOp function, const std::vector<bool> &repeated) {
  if (llvm::none_of(repeated, [](bool each) { return each; }))
    return;
  SmallVector<Operation *> operations = forwardOperations(function);
  llvm::DenseSet<Operation *> isForward(operations.begin(), operations.end());
  sinkDerivatives(function.front(), isForward);
  DenseMap<Operation *, size_t> numbers; // of those repeated
  for (auto [number, op] : llvm::enumerate(operations))
    if (repeated[number])
      numbers[op] = number;
  IRMapping clones;
  auto needsClone = [&](Value value) {
    return numbers.contains(value.getDefiningOp()) && !clones.contains(value);
  };
  for (Operation &reader : llvm::make_early_inc_range(function.front())) {
    if (isForward.contains(&reader) || reader.hasTrait<OpTrait::IsTerminator>())
      continue;
    llvm::SetVector<Operation *> needed;
    auto collect = [&](Operation *op) {
      for (Value operand : op->getOperands())
        if (needsClone(operand))
          needed.insert(operand.getDefiningOp());
    };
    collect(&reader);
    for (size_t i = 0; i < needed.size(); ++i) // grows
      collect(needed[i]);
    SmallVector<Operation *> inOrder = needed.takeVector();
    llvm::sort(inOrder, [&](Operation *a, Operation *b) { return numbers[a] < numbers[b]; });
    OpBuilder builder(&reader);
    for (Operation *op : inOrder) {
      Operation *clone = builder.clone(*op, clones);
      clone->setLoc(recomputedLocation(op->getLoc()));
      clone->setAttr(repetitionAttribute, builder.getUnitAttr());
    }
    for (OpOperand &operand : reader.getOpOperands())
      if (Value clone = clones.lookupOrNull(operand.get()))
        operand.set(clone);
  }
}

} // namespace trainc
