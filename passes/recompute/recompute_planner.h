// SPDX-License-Identifier: Apache-2.0
//
// The plans of recomputation that a module has, from keeping everything to keeping as little as
// helps. Plans differ by a price (planning/recompute_cut.h) and by the borders of segments that are
// repeated on their own (planning/segments.h); what one takes is found out by running the passes up
// to plan-memory on a clone, so that the peak is the true one, and the time that of the kernels
// that come out.
#pragma once

#include "mlir/IR/OwningOpRef.h"
#include "passes/passes.h"
#include "passes/plan_tables.h"
#include "passes/recompute/forward_part.h"
#include <map>
#include <optional>

namespace trainc {

struct RecomputePlan {
  double price = 0;           // bytes of traffic that a kept byte is worth
  std::vector<bool> repeated; // by operation of the forward part
  int64_t bytes = 0;          // planned, all arenas
  double time = 0;            // of a step, as bytes of traffic
  double flops = 0;           // of a step
};

class RecomputePlanner {
public:
  /// Plans for a module after form-products, which stays as it is.
  RecomputePlanner(mlir::ModuleOp module, const RecomputeOptions &options,
                   PlacementOptions placement);

  /// @forward_backward; null where there is none.
  mlir::func::FuncOp entry() const;
  const ForwardPart &forwardPart() const { return forward; }

  /// Nothing is repeated.
  const RecomputePlan &keepAll();
  /// What a price asks for without borders, and the pattern; at a price of 0 the pattern alone.
  const RecomputePlan &planFor(double price);
  /// The plan with least memory up to this price whose step takes at most `time` of that of
  /// `keepAll`.
  const RecomputePlan &cheapest(double price, double time);
  /// The plan that needs least memory.
  const RecomputePlan &smallest();
  /// The fastest of the plans that need about as little as that.
  const RecomputePlan &least();
  /// The fastest plan that needs no more; null where there is none.
  const RecomputePlan *within(int64_t bytes);
  /// A few plans from the least to keeping everything, by bytes.
  std::vector<RecomputePlan> curve();

  /// What plan-memory says of a plan.
  plan memoryOf(const RecomputePlan &plan);

private:
  /// Plans with the same borders, by price.
  struct Family {
    std::vector<bool> held; // values, of borders; empty: there are none
    std::map<double, RecomputePlan> plans;
    std::optional<double> smallest; // what is said to be the least is the least that is taken
  };

  mlir::OwningOpRef<mlir::ModuleOp> placed(const std::vector<bool> &repeated);
  RecomputePlan judge(double price, std::vector<bool> repeated);
  const RecomputePlan &planFor(Family &family, double price);
  void survey(Family &family);
  const RecomputePlan &smallestOf(Family &family);
  const RecomputePlan *within(Family &family, int64_t bytes);
  /// That of the borders with which least is needed; null where the model has none.
  Family *bordered();
  static std::optional<double> priceBetween(const Family &family, double low, double high);

  mlir::ModuleOp module;
  PlacementOptions placement;
  ForwardPart forward;
  std::optional<RecomputePlan> plain;
  Family plainFamily;                   // without borders
  std::optional<Family> borderedFamily; // once asked for
};

} // namespace trainc
