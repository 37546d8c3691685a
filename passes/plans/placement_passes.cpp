// SPDX-License-Identifier: Apache-2.0
//
// The order of the passes after plan-recompute, which runs them on clones to see what a plan comes
// to; compiler/pipeline.cpp runs them on the module.
#include "passes/passes.h"

using namespace mlir;

namespace trainc {

std::vector<std::unique_ptr<Pass>> createPlacementPasses(const PlacementOptions &options,
                                                         std::unique_ptr<Pass> split) {
  std::vector<std::unique_ptr<Pass>> passes;
  if (options.target == "cuda" && options.epilogues)
    passes.push_back(createFuseEpiloguesPass());
  if (split)
    passes.push_back(std::move(split));
  passes.push_back(createFusePass());
  passes.push_back(createLowerToKernelsPass());
  if (options.target == "cuda")
    passes.push_back(createPadRowsPass());
  passes.push_back(createScheduleKernelsPass(options.target));
  passes.push_back(createOrderOperationsPass());
  passes.push_back(createPlanMemoryPass());
  return passes;
}

} // namespace trainc
