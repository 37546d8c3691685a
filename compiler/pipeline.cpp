// SPDX-License-Identifier: Apache-2.0
//
// The order of passes, in one function.
#include "compiler/pipeline.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace trainc {

static std::vector<std::unique_ptr<Pass>> makePasses(const Recipe &recipe) {
  std::vector<std::unique_ptr<Pass>> passes;
  auto add = [&](std::unique_ptr<Pass> pass) { passes.push_back(std::move(pass)); };
  // The forward model, brought to composite operations that have good gradients.
  add(createRaisePatternsPass());
  add(createAttachLossPass(recipe.loss, recipe.lossOutput));
  if (recipe.precision == "f64")
    add(createSetPrecisionPass("f64"));
  // Differentiate early, on few operations ...
  add(createDifferentiatePass());
  add(createFormBucketsPass());
  add(createAttachOptimizerPass(recipe.optimizer));
  // ... and fuse late, over forward, backward and update alike.
  add(createDecomposePass());
  if (recipe.target == "cuda" && recipe.epilogues)
    add(createFuseEpiloguesPass());
  add(createFusePass());
  add(createLowerToKernelsPass());
  if (recipe.target == "cuda")
    add(createReserveScratchPass());
  add(createOrderOperationsPass());
  add(createPlanMemoryPass());
  return passes;
}

std::vector<std::string> pipelinePasses(const Recipe &recipe) {
  std::vector<std::string> names;
  for (auto &pass : makePasses(recipe))
    names.push_back(pass->getArgument().str());
  return names;
}

bool reportsUserErrors(StringRef pass) {
  return llvm::StringSet<>{"attach-loss", "differentiate", "attach-optimizer"}.contains(pass);
}

/// Writes the module as a numbered file; large constants are elided.
static std::string dump(ModuleOp module, StringRef folder, unsigned number, StringRef pass) {
  llvm::sys::fs::create_directories(folder);
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, llvm::formatv("{0,0+2}-{1}.mlir", number, pass).str());
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error) {
    emitWarning(module.getLoc()) << "cannot write '" << path << "': " << error.message();
    return "";
  }
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64).enableDebugInfo(/*enable=*/true, /*prettyForm=*/true);
  module->print(stream, flags);
  return path.str().str();
}

PipelineResult runPipeline(ModuleOp module, const Recipe &recipe, const PipelineHooks &hooks) {
  PipelineResult result;
  unsigned number = 0;
  if (!hooks.dumpFolder.empty())
    dump(module, hooks.dumpFolder, number, "import");
  for (auto &pass : makePasses(recipe)) {
    std::string name = pass->getArgument().str();
    result.lastPass = name;
    hooks.before(name);
    PassManager manager(module.getContext());
    manager.enableVerifier(true);
    manager.addPass(std::move(pass));
    if (failed(manager.run(module))) {
      if (!reportsUserErrors(name))
        result.dumpFile =
            dump(module, hooks.dumpFolder.empty() ? hooks.failureFolder : hooks.dumpFolder,
                 ++number, name + "-failed");
      return result;
    }
    if (!hooks.dumpFolder.empty())
      dump(module, hooks.dumpFolder, ++number, name);
    if (name == hooks.stopAfter) {
      result.stopped = true;
      break;
    }
  }
  result.succeeded = true;
  return result;
}

} // namespace trainc
