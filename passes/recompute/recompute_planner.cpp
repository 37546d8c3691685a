// SPDX-License-Identifier: Apache-2.0
//
// Searches along one number, the price, without and with borders (recompute_planner.h).
#include "passes/recompute/recompute_planner.h"
#include "dialects/errors/internal_error.h"
#include "mlir/Pass/PassManager.h"
#include "passes/kernels/fusion_roots.h"
#include "passes/passes.h"
#include "passes/planning/fusion_groups.h"
#include "passes/planning/segments.h"

#include <cmath>

using namespace mlir;

namespace trainc {

constexpr StringLiteral kGradientEntry = "forward_backward", kUpdateEntry = "update";
// Prices looked at first are powers of 4 up to 2 to this: a kept byte is worth from one byte of
// traffic to a product over half a million.
constexpr int mostExponent = 20;
constexpr int kRefinements = 10; // halvings of the logarithm between two of them
// Plans whose memory differs by less are told apart by their time.
constexpr double sameMemory = 0.005;
// A plan that takes no more of the time is not compared with those that have borders.
constexpr double littleTime = 1.01;

static func::FuncOp gradientEntry(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>(kGradientEntry);
  return function && !function.isDeclaration() ? function : func::FuncOp();
}

RecomputePlanner::RecomputePlanner(ModuleOp module, const RecomputeOptions &options,
                                   PlacementOptions placement)
    : module(module), placement(std::move(placement)) {
  if (func::FuncOp function = entry())
    forward = ForwardPart(function, options.pattern);
}

func::FuncOp RecomputePlanner::entry() const { return gradientEntry(module); }

OwningOpRef<ModuleOp> RecomputePlanner::placed(const std::vector<bool> &repeated) {
  OwningOpRef<ModuleOp> clone(module.clone());
  ForwardPart::repeat(gradientEntry(*clone), repeated);
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  for (std::unique_ptr<Pass> &pass : createPlacementPasses(placement))
    manager.addPass(std::move(pass));
  check(succeeded(manager.run(*clone)), module, "a plan of recomputation cannot be placed");
  return clone;
}

plan RecomputePlanner::memoryOf(const RecomputePlan &plan) {
  return describeMemory(*placed(plan.repeated));
}

RecomputePlan RecomputePlanner::judge(double price, std::vector<bool> repeated) {
  RecomputePlan plan{price, std::move(repeated)};
  OwningOpRef<ModuleOp> module = placed(plan.repeated);
  plan.bytes = describeMemory(*module).memory.bytes();
  for (const planned_entry &entry : describeKernels(*module)) {
    if (entry.name != kGradientEntry && entry.name != kUpdateEntry)
      continue;
    plan.flops += entry.flops;
    plan.time += entry.flops / flopsPerByte + double(entry.bytes) +
                 double(entry.steps.size()) * planning::FusionOptions().launchBytes;
  }
  return plan;
}

const RecomputePlan &RecomputePlanner::keepAll() {
  if (!plain)
    plain = judge(0, std::vector<bool>(forward.graph().operations.size(), false));
  return *plain;
}

const RecomputePlan &RecomputePlanner::planFor(double price) { return planFor(plainFamily, price); }

const RecomputePlan &RecomputePlanner::planFor(Family &family, double price) {
  std::map<double, RecomputePlan> &plans = family.plans;
  if (auto known = plans.find(price); known != plans.end())
    return known->second;
  std::vector<bool> repeated = planning::repeatedOperations(forward.graph(), price, family.held);
  for (const Family *known : {&family, &plainFamily})
    for (const auto &[other, equal] : known->plans)
      if (equal.repeated == repeated)
        return plans[price] = RecomputePlan(equal);
  return plans[price] = judge(price, std::move(repeated));
}

const RecomputePlan &RecomputePlanner::cheapest(double price, double time) {
  const double mostTime = keepAll().time * time;
  double fast = 0, slow = price;
  const RecomputePlan *best = &planFor(fast);
  auto look = [&](double at) {
    const RecomputePlan &plan = planFor(at);
    if (plan.time > mostTime)
      return false;
    if (plan.bytes < best->bytes)
      best = &plan;
    return true;
  };
  if (look(price))
    return *best;
  for (int round = 0; round < kRefinements; ++round)
    if (std::optional<double> between = priceBetween(plainFamily, fast, slow))
      (look(*between) ? fast : slow) = *between;
  return *best;
}

void RecomputePlanner::survey(Family &family) {
  planFor(family, 0);
  for (int exponent = 0; exponent <= mostExponent; exponent += 2)
    planFor(family, std::exp2(exponent));
}

/// A price between two whose plans differ; nothing where none is worth a look.
std::optional<double> RecomputePlanner::priceBetween(const Family &family, double low,
                                                     double high) {
  if (family.plans.at(low).repeated == family.plans.at(high).repeated)
    return std::nullopt;
  return low == 0 ? high / 2 : std::sqrt(low * high);
}

RecomputePlanner::Family *RecomputePlanner::bordered() {
  if (!borderedFamily) {
    const std::vector<planning::Segments> ways = planning::narrowSegments(forward.graph());
    auto least = llvm::min_element(ways, [](auto &a, auto &b) { return a.peak() < b.peak(); });
    borderedFamily.emplace();
    if (least != ways.end())
      borderedFamily->held = planning::heldBy(*least, forward.graph());
  }
  return borderedFamily->held.empty() ? nullptr : &*borderedFamily;
}

const RecomputePlan &RecomputePlanner::smallestOf(Family &family) {
  std::map<double, RecomputePlan> &plans = family.plans;
  if (family.smallest)
    return plans.at(*family.smallest);
  survey(family);
  auto best = plans.begin();
  auto choose = [&] {
    best = plans.begin();
    for (auto plan = plans.begin(); plan != plans.end(); ++plan)
      if (plan->second.bytes < best->second.bytes)
        best = plan;
  };
  choose();
  for (int round = 0; round < kRefinements; ++round) {
    std::optional<double> below, above;
    if (best != plans.begin())
      below = priceBetween(family, std::prev(best)->first, best->first);
    if (std::next(best) != plans.end())
      above = priceBetween(family, best->first, std::next(best)->first);
    if (below)
      planFor(family, *below);
    if (above)
      planFor(family, *above);
    choose();
  }
  family.smallest = best->first;
  return best->second;
}

const RecomputePlan &RecomputePlanner::smallest() {
  const RecomputePlan &plain = smallestOf(plainFamily);
  Family *family = bordered();
  if (!family)
    return plain;
  const RecomputePlan &other = smallestOf(*family);
  return other.bytes < plain.bytes ? other : plain;
}

const RecomputePlan &RecomputePlanner::least() {
  const RecomputePlan &small = smallest(), *fastest = &small;
  for (const Family *family : {&plainFamily, bordered()})
    if (family)
      for (auto &[price, plan] : family->plans)
        if (double(plan.bytes) <= double(small.bytes) * (1 + sameMemory) &&
            plan.time < fastest->time)
          fastest = &plan;
  return *fastest;
}

const RecomputePlan *RecomputePlanner::within(Family &family, int64_t bytes) {
  std::map<double, RecomputePlan> &plans = family.plans;
  survey(family);
  auto fits = [&](auto &plan) { return plan.second.bytes <= bytes; };
  if (llvm::none_of(plans, fits) && smallestOf(family).bytes > bytes)
    return nullptr;
  // Where the first that fits follows one that does not, the best lies between.
  for (int round = 0; round < kRefinements; ++round) {
    auto first = llvm::find_if(plans, fits);
    if (first == plans.begin())
      break;
    std::optional<double> price = priceBetween(family, std::prev(first)->first, first->first);
    if (!price)
      break;
    planFor(family, *price);
  }
  const RecomputePlan *best = nullptr;
  for (auto &[price, plan] : plans)
    if (plan.bytes <= bytes && (!best || plan.time < best->time))
      best = &plan;
  return best;
}

const RecomputePlan *RecomputePlanner::within(int64_t bytes) {
  if (planFor(0).bytes <= bytes)
    return &planFor(0);
  const RecomputePlan *best = within(plainFamily, bytes);
  if (best && best->time <= littleTime * keepAll().time)
    return best;
  if (Family *family = bordered())
    if (const RecomputePlan *other = within(*family, bytes);
        other && (!best || other->time < best->time))
      best = other;
  return best;
}

std::vector<RecomputePlan> RecomputePlanner::curve() {
  std::vector<RecomputePlan> points;
  constexpr int kPoints = 10;
  int64_t low = smallest().bytes, high = planFor(0).bytes;
  for (int i = 0; i <= kPoints; ++i)
    if (const RecomputePlan *plan = within(low + (high - low) * i / kPoints))
      if (points.empty() || points.back().repeated != plan->repeated)
        points.push_back(*plan);
  return points;
}

} // namespace trainc
