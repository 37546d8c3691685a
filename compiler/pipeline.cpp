// SPDX-License-Identifier: Apache-2.0
//
// The order of passes, in one function.
#include "compiler/pipeline.h"
#include "compiler/ir_file.h"
#include "compiler/output/write_file.h"
#include "dialects/errors/internal_error.h"
#include "dialects/train/train.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace trainc {

PlacementOptions placementOptions(const Recipe &recipe) {
  return {recipe.target, recipe.epilogues};
}

static std::vector<std::unique_ptr<Pass>>
makePasses(const Recipe &recipe, const RecomputeOptions &recompute, const StageOptions &stages) {
  std::vector<std::unique_ptr<Pass>> passes;
  auto add = [&](std::unique_ptr<Pass> pass) { passes.push_back(std::move(pass)); };
  // The forward model, brought to composite operations that have good gradients.
  add(createRaisePatternsPass());
  add(createRaiseAttentionPass(recipe.kept));
  if (recipe.precision != "f32") // in front of what has numbers of its own
    add(createSetPrecisionPass(recipe.precision, recipe.keptF32));
  if (recipe.trains)
    add(createAttachLossPass());
  add(createDeriveEvaluatePass(/*only=*/!recipe.trains, recipe.predicts));
  // Differentiate early, on few operations ...
  if (recipe.trains) {
    add(createDifferentiatePass(recipe.kept));
    const train::Optimizer *optimizer = train::findOptimizer(recipe.optimizer);
    add(createFormBucketsPass(optimizer ? optimizer->row : 1));
    add(createAttachOptimizerPass(recipe.optimizer));
  }
  // ... and fuse late, over forward, backward and update alike.
  add(createDecomposePass());
  if (recipe.trains && train::isNarrow(recipe.precision)) {
    if (recipe.target == "cuda" && recipe.epilogues)
      add(createRoundBiasesPass());
    add(createCopyParametersPass());
  }
  add(createChunkRowsPass(recipe.rowChunk));
  add(createFormProductsPass());
  if (recipe.trains)
    add(createStoreFrozenPass());
  std::unique_ptr<Pass> split;
  if (recipe.trains) {
    add(createPlanRecomputePass(recompute, placementOptions(recipe)));
    split = createSplitPipelinePass(stages);
  }
  for (std::unique_ptr<Pass> &pass :
       createPlacementPasses(placementOptions(recipe), std::move(split)))
    add(std::move(pass));
  return passes;
}

std::vector<std::string> pipelinePasses(const Recipe &recipe) {
  std::vector<std::string> names;
  for (auto &pass : makePasses(recipe, {}, {}))
    names.push_back(pass->getArgument().str());
  return names;
}

std::optional<ExitCode> userErrorOf(StringRef pass) {
  if (pass == "plan-recompute")
    return ExitCode::overLimit;
  if (pass == "set-precision") // a pattern that nothing matches
    return ExitCode::usage;
  if (llvm::is_contained({"attach-loss", "differentiate", "attach-optimizer", "split-pipeline"},
                         pass))
    return ExitCode::unsupportedModel;
  return std::nullopt;
}

namespace {

/// Numbered files of IR, one for each pass.
class Dumps {
public:
  Dumps(ModuleOp module, const PipelineHooks &hooks)
      : module(module), folder(hooks.dumpFolder), failureFolder(hooks.failureFolder),
        read(hooks.read) {}

  /// After a pass; `rest` are the passes that follow, as trainc-opt takes them.
  void write(StringRef pass, StringRef rest) {
    if (folder.empty())
      return;
    std::string command = "trainc-emit FILE -o FOLDER";
    if (!rest.empty())
      command = "trainc-opt --mlir-print-debuginfo --pass-pipeline='builtin.module(" + rest.str() +
                ")' FILE | trainc-emit -o FOLDER";
    writeFile(folder, pass.str(),
              "// After " + pass.str() + ". The source folder from here:\n//   " + command + "\n");
  }
  /// Before a pass that failed: the path.
  std::string writeFailure(StringRef pass) {
    return writeFile(folder.empty() ? failureFolder : folder, pass.str() + "-failed",
                     "// What " + pass.str() + " left when it failed.\n");
  }

  std::string unwritten, why; // the first file that could not be written

private:
  std::string writeFile(StringRef into, const std::string &name, const std::string &head) {
    llvm::sys::fs::create_directories(into);
    llvm::SmallString<256> path(into);
    llvm::sys::path::append(path, llvm::formatv("{0,0+2}-{1}.mlir", number++, name).str());
    if (llvm::any_of(read, [&](const std::string &file) {
          return llvm::sys::fs::equivalent(llvm::Twine(path), file);
        })) {
      unwritten = path.str().str();
      why = "is read by this command";
      return "";
    }
    std::error_code error = writeWholeFile(path, [&](llvm::raw_ostream &stream) {
      stream << head;
      writeIr(module, stream);
    });
    if (error && unwritten.empty()) {
      unwritten = path.str().str();
      why = "cannot be written: " + error.message();
    }
    return error ? "" : path.str().str();
  }

  ModuleOp module;
  std::string folder, failureFolder;
  const std::vector<std::string> &read;
  unsigned number = 0;
};

/// The passes after each, as trainc-opt takes them.
std::vector<std::string> textBehindEach(ArrayRef<std::unique_ptr<Pass>> passes) {
  std::vector<std::string> texts(passes.size());
  for (size_t i = passes.size(); i-- > 1;) {
    llvm::raw_string_ostream text(texts[i - 1]);
    passes[i]->printAsTextualPipeline(text);
    text << (texts[i].empty() ? "" : ",") << texts[i];
  }
  return texts;
}

/// The verifier would take a third of a long model's time after every pass. What is invalid does
/// not get past the end of a phase; --dump-ir tells which pass made it.
bool endsPhase(StringRef pass) {
  return llvm::is_contained({"differentiate", "decompose", "lower-to-kernels", "plan-memory"},
                            pass);
}

} // namespace

void nameRunningPass(PassManager &manager) {
  struct Naming : PassInstrumentation {
    void runBeforePass(Pass *pass, Operation *) override {
      if (!pass->getArgument().empty()) // adaptors have none
        internalErrorContext().pass = pass->getArgument().str();
    }
  };
  manager.addInstrumentation(std::make_unique<Naming>());
}

PipelineResult runPipeline(ModuleOp module, const Recipe &recipe, const RecomputeOptions &recompute,
                           const StageOptions &stages, const PipelineHooks &hooks) {
  PipelineResult result;
  Dumps dumps(module, hooks);
  std::vector<std::unique_ptr<Pass>> passes = makePasses(recipe, recompute, stages);
  std::vector<std::string> rest = textBehindEach(passes);
  std::string all;
  llvm::raw_string_ostream stream(all);
  passes.front()->printAsTextualPipeline(stream);
  dumps.write("import", stream.str() + "," + rest.front());
  result.unwritten = dumps.unwritten;
  result.why = dumps.why;
  for (auto [pass, behind] : llvm::zip(passes, rest)) {
    if (!result.unwritten.empty())
      return result;
    std::string name = pass->getArgument().str();
    result.lastPass = name;
    hooks.before(name);
    PassManager manager(module.getContext());
    nameRunningPass(manager);
    bool isLast = behind.empty() || name == hooks.stopAfter;
    manager.enableVerifier(!hooks.dumpFolder.empty() || isLast || endsPhase(name));
    manager.addPass(std::move(pass));
    if (failed(manager.run(module))) {
      if (!userErrorOf(name))
        result.dumpFile = dumps.writeFailure(name);
      return result;
    }
    dumps.write(name, behind);
    if (!hooks.after(name))
      return result;
    result.unwritten = dumps.unwritten;
    result.why = dumps.why;
    if (name == hooks.stopAfter) {
      result.stopped = true;
      break;
    }
  }
  result.succeeded = result.unwritten.empty();
  return result;
}

} // namespace trainc
