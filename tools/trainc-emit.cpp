// SPDX-License-Identifier: Apache-2.0
//
// Emits the source folder of a planned module in textual form, for tests of the
// emitter alone: trainc-emit FILE.mlir -o DIRECTORY [--target cuda]
#include "compiler/emit/emit.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::Required,
                                        llvm::cl::desc("FILE.mlir"));
static llvm::cl::opt<std::string> output("o", llvm::cl::Required, llvm::cl::desc("directory"));
static llvm::cl::opt<std::string> target("target", llvm::cl::init("cpu"),
                                         llvm::cl::desc("cpu or cuda"));

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "emits the source folder of a planned module\n");
  MLIRContext context;
  context.loadDialect<func::FuncDialect, arith::ArithDialect, math::MathDialect,
                      trainc::nn::NNDialect, trainc::kernel::KernelDialect>();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, ParserConfig(&context));
  if (!module)
    return 1;
  if (std::error_code error = llvm::sys::fs::create_directories(output)) {
    llvm::errs() << "trainc-emit: cannot make '" << output << "': " << error.message() << "\n";
    return 1;
  }
  trainc::ProgramTables tables;
  tables.modelName = "model";
  tables.compilerVersion = "0";
  tables.target = target;
  tables.march = "x86-64-v3";
  tables.lossName = "mse";
  tables.optimizerName = "sgd";
  return failed(trainc::emitSources(*module, tables, output)) ? 1 : 0;
}
