// SPDX-License-Identifier: Apache-2.0
//
// Constructors of the passes, in the order in which compiler/pipeline.cpp runs
// them. Each pass has the file, the test and the command-line flag of its name.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"
#include <memory>
#include <string>
#include <vector>

namespace trainc {

struct RecomputeOptions {
  std::string level = "none"; // or light, full
  int64_t budget = 0;         // bytes of all arenas that the plan may take at any level; 0: any
  std::string pattern;        // regular expression of whole names of nodes to repeat; empty: none
};

struct StageOptions {
  int64_t stages = 1;            // 1: a step is not cut
  int64_t chunksPerStage = 1;    // above 1 for interleaved only
  std::vector<std::string> cuts; // nodes after which it is; empty: where the planner says
  std::string schedule = "1f1b"; // or gpipe, interleaved, zb-h1
  int64_t microBatches = 1;      // of a step and replica
  int64_t memoryLimit = 0;       // bytes that a rank of a stage shall hold at most; 0: none
  std::string target = "cpu";    // or cuda: what a rank holds

  int64_t chunks() const { return stages * chunksPerStage; }
};

/// What the passes after plan-recompute follow.
struct PlacementOptions {
  std::string target = "cpu"; // or cuda
  bool epilogues = true;      // of matrix products, where the target's library has them
};

std::unique_ptr<mlir::Pass> createRaisePatternsPass();
std::unique_ptr<mlir::Pass> createRaiseAttentionPass(llvm::StringRef kept = "");
std::unique_ptr<mlir::Pass> createAttachLossPass();
std::unique_ptr<mlir::Pass> createSetPrecisionPass(llvm::StringRef to, llvm::StringRef kept = "");
/// `only`: the model is not trained, @model goes.
std::unique_ptr<mlir::Pass> createDeriveEvaluatePass(bool only = false, bool outputs = true);
std::unique_ptr<mlir::Pass> createStoreFrozenPass();
std::unique_ptr<mlir::Pass> createDifferentiatePass(llvm::StringRef kept = "");
std::unique_ptr<mlir::Pass> createFormBucketsPass(int64_t multiple = 1);
std::unique_ptr<mlir::Pass> createAttachOptimizerPass(llvm::StringRef kind);
std::unique_ptr<mlir::Pass> createDecomposePass();
std::unique_ptr<mlir::Pass> createRoundBiasesPass();
std::unique_ptr<mlir::Pass> createCopyParametersPass();
/// `limit`: bytes of a chunk; 0: nothing is cut.
std::unique_ptr<mlir::Pass> createChunkRowsPass(int64_t limit);
std::unique_ptr<mlir::Pass> createFormProductsPass();
std::unique_ptr<mlir::Pass> createPlanRecomputePass(const RecomputeOptions &options,
                                                    const PlacementOptions &placement);
std::unique_ptr<mlir::Pass> createSplitPipelinePass(const StageOptions &options);
std::unique_ptr<mlir::Pass> createFuseEpiloguesPass();
std::unique_ptr<mlir::Pass> createFusePass();
std::unique_ptr<mlir::Pass> createLowerToKernelsPass();
std::unique_ptr<mlir::Pass> createPadRowsPass();
std::unique_ptr<mlir::Pass> createScheduleKernelsPass(llvm::StringRef target);
std::unique_ptr<mlir::Pass> createOrderOperationsPass();
std::unique_ptr<mlir::Pass> createPlanMemoryPass();

/// The passes after plan-recompute: from primitives and steps to places. `split`, if any, is
/// split-pipeline: it runs after fuse-epilogues, so that libraries compute what they do for the
/// step in one piece.
std::vector<std::unique_ptr<mlir::Pass>>
createPlacementPasses(const PlacementOptions &options, std::unique_ptr<mlir::Pass> split = nullptr);

/// What less memory costs a module after form-products: one line for each of some budgets.
std::string memoryCurveText(mlir::ModuleOp module, const RecomputeOptions &options,
                            const PlacementOptions &placement);

} // namespace trainc
