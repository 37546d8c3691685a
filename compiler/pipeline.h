// SPDX-License-Identifier: Apache-2.0
//
// The order of passes from an imported model to placed kernels.
#pragma once

#include "compiler/exit_codes.h"
#include "compiler/recipe.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/passes.h"
#include <functional>
#include <optional>
#include <string>

namespace mlir {
class PassManager;
}

namespace trainc {

/// The pass whose operations --write-gradient-graph writes.
constexpr const char *kGradientGraphBehind = "decompose";

struct PipelineHooks {
  /// Called before each pass with its name, for progress and times.
  std::function<void(llvm::StringRef pass)> before = [](llvm::StringRef) {};
  /// Called after each pass; false, after an error was reported, ends the pipeline.
  std::function<bool(llvm::StringRef pass)> after = [](llvm::StringRef) { return true; };
  std::string dumpFolder;        // numbered IR files, one per pass; empty: none
  std::vector<std::string> read; // files that no dump may take the place of
  std::string failureFolder;     // where a failing pass leaves its IR if there is no dump folder
  std::string stopAfter;         // name of the last pass to run; empty: all
};

struct PipelineResult {
  bool succeeded = false;
  bool stopped = false;  // at stopAfter
  std::string lastPass;  // the one that failed or stopped
  std::string dumpFile;  // of an internal error: the IR before the failing pass
  std::string unwritten; // a file of the dump folder that could not be written
  std::string why;       // it could not
};

/// Names of the passes in order.
std::vector<std::string> pipelinePasses(const Recipe &recipe);

/// Runs the passes on `module`, verifying at the end of each phase, and after each pass where the
/// IR is dumped. Errors are emitted as diagnostics.
PipelineResult runPipeline(mlir::ModuleOp module, const Recipe &recipe,
                           const RecomputeOptions &recompute, const StageOptions &stages,
                           const PipelineHooks &hooks);

/// Lets internal errors name the pass that runs.
void nameRunningPass(mlir::PassManager &manager);

/// How trainc ends after an error of this pass, if its errors are about the model or the recipe,
/// not about trainc.
std::optional<ExitCode> userErrorOf(llvm::StringRef pass);

/// What the recipe says to the passes after plan-recompute.
PlacementOptions placementOptions(const Recipe &recipe);

} // namespace trainc
