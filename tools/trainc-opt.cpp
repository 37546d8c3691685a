// SPDX-License-Identifier: Apache-2.0
//
// trainc-opt: runs passes one by one on textual IR, such as the files of trainc --dump-ir. The
// passes are those linked in; each registers itself.
#include "compiler/ir_file.h"
#include "compiler/pipeline.h"
#include "compiler/standard_output.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// LLVM's shared library registers some 900 options of its code generators when it is loaded:
/// before main, unlike ours.
static void hideForeignOptions() {
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (!StringRef(name).starts_with("help"))
      option->setHiddenFlag(llvm::cl::ReallyHidden);
}

static LogicalResult run(StringRef inputName, StringRef outputName, DialectRegistry &registry) {
  const MlirOptMainConfig asked = MlirOptMainConfig::createFromCLOptions();
  MlirOptMainConfig config = asked;
  config.setPassPipelineSetupFn([&](PassManager &manager) {
    if (manager.getOpAnchorName() == ModuleOp::getOperationName())
      manager.addPass(trainc::createReadConstantsPass());
    trainc::nameRunningPass(manager);
    return asked.setupPassPipeline(manager);
  });
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputName, &message);
  std::unique_ptr<llvm::ToolOutputFile> output =
      input ? openOutputFile(outputName, &message) : nullptr;
  if (!output) {
    llvm::errs() << "trainc-opt: " << message << "\n";
    return failure();
  }
  bool good = succeeded(MlirOptMain(output->os(), std::move(input), registry, config));
  llvm::raw_fd_ostream &stream = output->os();
  stream.flush();
  if (outputName != "-" && stream.has_error()) {
    llvm::errs() << "trainc-opt: cannot write '" << outputName << "': " << stream.error().message()
                 << "\n";
    stream.clear_error();
    good = false;
  }
  if (good)
    output->keep();
  return success(good);
}

int main(int argc, char **argv) {
  trainc::watchStandardOutput("trainc-opt");
  hideForeignOptions();
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registry.insert<trainc::nn::NNDialect, trainc::train::TrainDialect, trainc::kernel::KernelDialect,
                  func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  registerCanonicalizerPass();
  registerCSEPass();
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "trainc's passes, one by one\n", registry);
  return asMainReturnCode(run(input, output, registry));
}
