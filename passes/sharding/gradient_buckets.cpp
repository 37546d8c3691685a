// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/gradient_buckets.h"
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include <map>

using namespace mlir;

namespace trainc {

static constexpr llvm::StringLiteral kShards = "kernel.shards_gradients"; // of the module
static constexpr llvm::StringLiteral kUpdates = "kernel.updates_in_backward";
static constexpr llvm::StringLiteral kMark = "kernel.completes_bucket"; // of a step

/// A bucket holds one part in so many of a function's gradients, or one gradient: enough of them
/// that two take little memory, few enough that the ranks seldom wait for each other.
static constexpr int64_t kBucketsOfFunction = 16;

bool isSummed(func::FuncOp function, unsigned result) {
  train::RoleAttrInterface role = train::resultRoleOf(function, result);
  if (isa_and_nonnull<train::StepTotalsAttr>(role)) // before the first update, by themselves
    return !updatesInBackward(function->getParentOfType<ModuleOp>());
  return isa_and_nonnull<train::GradientAttr, train::NewValueAttr>(role);
}

bool shardsGradients(ModuleOp module) { return module->hasAttr(kShards); }

bool gathersGradients(ModuleOp module) {
  train::TargetAttr target = train::targetOf(module);
  return shardsGradients(module) && target && target.getName().getValue() == "cuda";
}

void shardGradients(ModuleOp module) {
  module->setAttr(kShards, UnitAttr::get(module.getContext()));
}

bool updatesInBackward(ModuleOp module) { return module->hasAttr(kUpdates); }

void updateInBackward(ModuleOp module) {
  module->setAttr(kUpdates, UnitAttr::get(module.getContext()));
}

bool gradientsAreActivations(ModuleOp module) {
  return shardsGradients(module) || updatesInBackward(module);
}

/// What makes the step's totals, without which nothing is updated; null: nothing does.
static Operation *totalsOf(func::FuncOp function) {
  for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands()))
    if (isa_and_nonnull<train::StepTotalsAttr>(train::resultRoleOf(function, i)))
      return value.getDefiningOp();
  return nullptr;
}

/// The step after which a result of @forward_backward may change what it belongs to: the last of
/// those that make it, that read the parameter or a copy of it, and that makes the step's totals.
static Operation *lastReader(func::FuncOp function, unsigned result) {
  Operation *last = function.front().getTerminator()->getOperand(result).getDefiningOp();
  const StringRef name = train::resultRoleOf(function, result).getName();
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    train::RoleAttrInterface role = train::roleOf(function, i);
    auto copy = dyn_cast_or_null<train::ParameterCopyAttr>(role);
    if (!isa_and_nonnull<train::ParameterAttr, train::BufferAttr, train::ParameterCopyAttr>(role) ||
        (copy ? copy.getParameter() : role.getName()) != name)
      continue;
    for (Operation *user : function.getArgument(i).getUsers())
      if (isa<kernel::StepOpInterface>(user) && last->isBeforeInBlock(user))
        last = user;
  }
  Operation *totals = totalsOf(function);
  return totals && last->isBeforeInBlock(totals) ? totals : last;
}

/// As soon as the loss is known.
static void hoistTotals(func::FuncOp function) {
  Operation *step = totalsOf(function), *last = nullptr;
  if (!step)
    return;
  for (Value operand : step->getOperands())
    if (Operation *made = operand.getDefiningOp(); made && (!last || last->isBeforeInBlock(made)))
      last = made;
  if (last)
    step->moveAfter(last);
}

/// Results of the function that ranks sum, by the step that makes them, or after which they may be
/// used up. fuse has given each a tensor of its own.
static llvm::DenseMap<Operation *, SmallVector<unsigned>> summedByStep(func::FuncOp function) {
  llvm::DenseMap<Operation *, SmallVector<unsigned>> found;
  const bool uses = updatesInBackward(function->getParentOfType<ModuleOp>());
  for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands()))
    if (isSummed(function, i)) {
      check(isa_and_nonnull<kernel::StepOpInterface>(value.getDefiningOp()), function,
            "a gradient is no step's result");
      found[uses ? lastReader(function, i) : value.getDefiningOp()].push_back(i);
    }
  return found;
}

int64_t bytesOfResults(func::FuncOp function, ArrayRef<unsigned> results) {
  int64_t bytes = 0;
  for (unsigned result : results)
    bytes += bytesOf(function.getResultTypes()[result]);
  return bytes;
}

void formGradientBuckets(func::FuncOp function) {
  const bool uses = updatesInBackward(function->getParentOfType<ModuleOp>());
  if (uses)
    hoistTotals(function);
  const auto summed = summedByStep(function);
  int64_t all = 0, inBucket = 0;
  for (auto &[step, results] : summed)
    all += bytesOfResults(function, results);
  Operation *last = nullptr;
  for (auto step : function.front().getOps<kernel::StepOpInterface>()) {
    auto made = summed.find(step);
    if (made == summed.end())
      continue;
    last = step;
    inBucket += bytesOfResults(function, made->second);
    if (!uses && inBucket * kBucketsOfFunction < all)
      continue;
    step->setAttr(kMark, UnitAttr::get(step->getContext()));
    inBucket = 0;
  }
  if (last)
    last->setAttr(kMark, UnitAttr::get(last->getContext()));
}

GradientBuckets gradientBucketsOf(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  if (!gradientsAreActivations(module))
    return {};
  const auto summed = summedByStep(function);
  GradientBuckets buckets;
  SmallVector<unsigned> gradients;
  int number = 0;
  for (auto step : function.front().getOps<kernel::StepOpInterface>()) {
    if (auto made = summed.find(step); made != summed.end())
      llvm::append_range(gradients, made->second);
    if (step->hasAttr(kMark)) {
      if (!buckets.empty())
        buckets.back().until = number;
      buckets.push_back({number, 0, gradients});
      gradients.clear();
    }
    ++number;
  }
  if (!buckets.empty())
    buckets.back().until = number;
  if (updatesInBackward(module))
    for (GradientBucket &bucket : buckets)
      bucket.until = bucket.step;
  return buckets;
}

/// By the last step that makes or reads them; none where a step does not make one of them.
static std::map<int, SmallVector<unsigned>> summedByLastStep(func::FuncOp function) {
  llvm::DenseMap<Operation *, int> numbers;
  for (auto step : function.front().getOps<kernel::StepOpInterface>())
    numbers.try_emplace(step, int(numbers.size()));
  std::map<int, SmallVector<unsigned>> found;
  for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands())) {
    if (!isSummed(function, i))
      continue;
    auto made = numbers.find(value.getDefiningOp());
    if (made == numbers.end())
      return {};
    int last = made->second;
    for (Operation *user : value.getUsers())
      if (auto reads = numbers.find(user); reads != numbers.end())
        last = std::max(last, reads->second);
    found[last].push_back(i);
  }
  return found;
}

GradientBuckets bucketsToldBy(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  if (gradientsAreActivations(module))
    return gradientBucketsOf(function);
  const bool isStep = function.getName() == "forward_backward" && !function.isDeclaration();
  if (!isStep || train::pipelineOf(module))
    return {};
  const auto summed = summedByLastStep(function);
  int64_t all = 0, inBucket = 0;
  for (auto &[step, results] : summed)
    all += bytesOfResults(function, results);
  GradientBuckets buckets;
  SmallVector<unsigned> gradients;
  for (auto &[step, results] : summed) {
    inBucket += bytesOfResults(function, results);
    llvm::append_range(gradients, results);
    if (inBucket * kBucketsOfFunction < all && step != summed.rbegin()->first)
      continue;
    buckets.push_back({step, 0, gradients});
    gradients.clear();
    inBucket = 0;
  }
  const int end = llvm::range_size(function.front().getOps<kernel::StepOpInterface>());
  for (GradientBucket &bucket : buckets)
    bucket.until = end;
  return buckets;
}

} // namespace trainc
