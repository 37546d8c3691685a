// SPDX-License-Identifier: Apache-2.0
//
// Emits the source folder of a planned module in textual form: of what trainc-opt makes of a
// file of trainc --dump-ir by the passes that its first line names, the folder that trainc
// would have written.
//
//   trainc-emit FILE.mlir -o FOLDER [--target cuda]
#include "compiler/emit/emit.h"
#include "compiler/installation.h"
#include "compiler/ir_file.h"
#include "compiler/standard_output.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/options/option_reader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace cl = llvm::cl;

static cl::OptionCategory category("trainc-emit");
static cl::opt<std::string> input(cl::Positional, cl::init("-"), cl::desc("FILE.mlir"),
                                  cl::cat(category));
static cl::opt<std::string> output("o", cl::Required, cl::value_desc("FOLDER"),
                                   cl::desc("where the source goes"), cl::cat(category));
static cl::opt<std::string> target("target", cl::value_desc("cpu|cuda"),
                                   cl::desc("for modules that do not say it"), cl::cat(category));

using trainc::ExitCode;

static int endsWith(ExitCode code) { return static_cast<int>(code); }

static int cannotBeWritten(const std::error_code &error) {
  llvm::errs() << "trainc-emit: " << output << ": cannot be written: " << error.message()
               << "\n  try: another folder with -o\n";
  return endsWith(ExitCode::outputNotWritten);
}

int main(int argc, char **argv) {
  trainc::watchStandardOutput("trainc-emit");
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv, "emits the source folder of a planned module\n",
                                   &llvm::errs()))
    return endsWith(ExitCode::usage);
  trainc::OptionReader reader(trainc::kOfCommand, [](const trainc::OptionProblem &problem) {
    llvm::errs() << "trainc-emit: --" << problem.option << " " << problem.message
                 << "\n  try: " << problem.advice << "\n";
  });
  if (!target.empty())
    reader.choice("target", target, trainc::kTargets);
  if (!reader.good())
    return endsWith(ExitCode::usage);
  MLIRContext context;
  context
      .loadDialect<func::FuncDialect, arith::ArithDialect, math::MathDialect, trainc::nn::NNDialect,
                   trainc::train::TrainDialect, trainc::kernel::KernelDialect>();
  OwningOpRef<ModuleOp> module = trainc::readIr(input, context);
  if (!module)
    return endsWith(ExitCode::internalError);
  if (std::error_code error = llvm::sys::fs::create_directories(output))
    return cannotBeWritten(error);
  if (!target.empty() || !trainc::train::targetOf(*module))
    trainc::setTarget(*module, {target.empty() ? "cpu" : target.getValue(), "x86-64-v3", {"80"}});
  trainc::Installation installation = trainc::findInstallation();
  trainc::Report report;
  if (failed(trainc::emitSources(*module, installation.version, output, report))) {
    report.print(llvm::errs());
    return endsWith(report.empty() ? ExitCode::internalError : report.exitCode());
  }
  std::string name =
      trainc::programTables(*module, installation.version).target.name; // as the emitter saw it
  if (std::error_code error =
          installation.copyRuntime(name, trainc::EmittedProgram::trainer, output))
    return cannotBeWritten(error);
  return endsWith(ExitCode::ok);
}
