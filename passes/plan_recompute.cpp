// SPDX-License-Identifier: Apache-2.0
//
// plan-recompute: what the backward pass recomputes instead of keeping it.
//
// Problem: what the backward pass reads of the forward pass lives from the one to the
// other, and is most of the memory of training. Method: clones of forward operations,
// placed in front of the first backward operation that needs them; originals then die in
// the forward pass. Which ones is the answer of a minimum cut for a price of a byte
// (planning/recompute_cut.h), with and without borders of segments that come again one by one
// (planning/segments.h); true plans are compared (recompute/recompute_planner.h): `light` takes the
// price at which fuse, too, holds a tensor rather than read it again, and 3 % of the step's time;
// `full` is the plan with the least memory; a budget asks for the fastest that fits it. Runs after
// form-products, where the cost of every operation is known, and in front of fuse, which joins
// clones with their readers. No pass after it merges equal operations: that would undo it. A clone
// computes what its original does, random bits too (nn.random_bits is a function of its operands).
// Weakness: a value is repeated once, for all that read it, and lives between them, so borders are
// never repeated themselves.
#include "dialects/kernel/kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/planning/fusion_groups.h"
#include "passes/recompute/recompute_planner.h"
#include "runtime/byte_text.h"

using namespace mlir;

namespace trainc {
namespace {

/// What `light` may take of a step's predicted time: small products are cheap for their bytes, but
/// many.
constexpr double lightTime = 1.03;

struct PlanRecompute : ModulePass<PlanRecompute, CheckedPass> {
  PlanRecompute() = default;
  PlanRecompute(const RecomputeOptions &options, const PlacementOptions &placement) {
    level = options.level;
    budget = std::to_string(options.budget);
    pattern = options.pattern;
    target = placement.target;
    epilogues = placement.epilogues ? "true" : "false";
  }

  TextOption level{*this, "level", "name", "none", "none, light or full"};
  TextOption budget{*this, "budget", "size", "0", "bytes of all arenas; 0: as the level says"};
  TextOption pattern{*this, "pattern", "pattern", "",
                     "regular expression of nodes to compute again"};
  TextOption target{*this, "target", "name", "cpu", "what runs the kernels: cpu or cuda"};
  TextOption epilogues{*this, "epilogues", "true|false", "true",
                       "whether fuse-epilogues follows, for cuda"};

  static constexpr StringLiteral flag = "plan-recompute";
  static constexpr StringLiteral description =
      "Let the backward pass compute again what is not worth its memory";

  std::pair<RecomputeOptions, PlacementOptions> read(OptionReader &reader) const {
    return {{reader.choice("level", level, kRecomputeLevels),
             reader.bytesOrZero("budget", budget, "1.5GiB"),
             pattern.empty() ? "" : reader.pattern("pattern", pattern)},
            {reader.choice("target", target, kTargets), reader.flag("epilogues", epilogues)}};
  }
  void checkOptions(OptionReader &reader) const override { read(reader); }

  void runOnOperation() override {
    OptionReader reader = silentReader();
    auto [options, placement] = read(reader);
    if (options.level == "none" && options.budget == 0 && options.pattern.empty())
      return;
    ModuleOp module = getOperation();
    RecomputePlanner planner(module, options, placement);
    if (planner.forwardPart().graph().operations.empty())
      return;
    if (Operation *op = planner.forwardPart().forcedInVain()) {
      op->emitError("it cannot be recomputed: it acts on more than its tensors").attachNote()
          << "try: a pattern of fewer nodes";
      return signalPassFailure();
    }
    const RecomputePlan *plan = choose(planner, options);
    if (!plan)
      return signalPassFailure();
    record(*plan, planner.keepAll(), options);
    ForwardPart::repeat(planner.entry(), plan->repeated);
  }

private:
  /// Null, with an error, where a budget cannot be met.
  const RecomputePlan *choose(RecomputePlanner &planner, const RecomputeOptions &options) {
    if (options.budget == 0)
      return options.level == "light"
                 ? &planner.cheapest(planning::FusionOptions().peakPrice, lightTime)
             : options.level == "full" ? &planner.least()
                                       : &planner.planFor(0);
    if (const RecomputePlan *plan = planner.within(options.budget))
      return plan;
    const RecomputePlan &least = planner.smallest();
    InFlightDiagnostic error =
        emitError(getOperation().getLoc(), "the memory of a rank can be brought down to ");
    error << byte_text(least.bytes) << " (" << least.bytes
          << " bytes), which is more than the budget of " << byte_text(options.budget) << ": "
          << memoryNeeds(planner.memoryOf(least), /*activationsAlone=*/true);
    error.attachNote() << "try: --memory-budget " << least.bytes
                       << ", a smaller batch, or an optimizer with less state";
    return nullptr;
  }

  /// `all` is the plan that keeps everything.
  void record(const RecomputePlan &plan, const RecomputePlan &all,
              const RecomputeOptions &options) {
    Builder builder(&getContext());
    std::string rule = options.budget > 0 ? "budget of " + std::to_string(options.budget) + " bytes"
                                          : options.level;
    if (!options.pattern.empty())
      rule += ", and nodes " + options.pattern;
    getOperation()->setAttr(
        "kernel.recompute",
        builder.getDictionaryAttr(
            {builder.getNamedAttr("rule", builder.getStringAttr(rule)),
             builder.getNamedAttr("kept_bytes", builder.getI64IntegerAttr(all.bytes)),
             builder.getNamedAttr("time", builder.getF64FloatAttr(plan.time / all.time)),
             builder.getNamedAttr("flops", builder.getF64FloatAttr(plan.flops / all.flops))}));
  }
};

PassRegistration<PlanRecompute> planRecomputeRegistration;

} // namespace

std::unique_ptr<Pass> createPlanRecomputePass(const RecomputeOptions &options,
                                              const PlacementOptions &placement) {
  return std::make_unique<PlanRecompute>(options, placement);
}

} // namespace trainc
