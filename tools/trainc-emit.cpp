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
#include "tools/run_tool.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

using trainc::ExitCode;

namespace {

struct EmitOptions : trainc::tools::ToolOptions {
  std::string output, target;
};

int endsWith(ExitCode code) { return static_cast<int>(code); }

int cannotBeWritten(const std::string &output, const std::error_code &error) {
  llvm::errs() << "trainc-emit: " << output << ": cannot be written: " << error.message()
               << "\n  try: another folder with -o\n";
  return endsWith(ExitCode::outputNotWritten);
}

int emit(const EmitOptions &options) {
  const std::string &output = options.output, &target = options.target;
  if (output.empty())
    throw trainc::failure(trainc::exit_usage, "trainc-emit: nothing says where to write\n"
                                              "  try: -o FOLDER");
  MLIRContext context;
  context
      .loadDialect<func::FuncDialect, arith::ArithDialect, math::MathDialect, trainc::nn::NNDialect,
                   trainc::train::TrainDialect, trainc::kernel::KernelDialect>();
  OwningOpRef<ModuleOp> module = trainc::readIr(options.word(0, "-"), context);
  if (!module)
    return endsWith(ExitCode::internalError);
  if (std::error_code error = llvm::sys::fs::create_directories(output))
    return cannotBeWritten(output, error);
  if (!target.empty() || !trainc::train::targetOf(*module))
    trainc::setTarget(*module, {target.empty() ? "cpu" : target, "x86-64-v3", {"80"}});
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
    return cannotBeWritten(output, error);
  return endsWith(ExitCode::ok);
}

} // namespace

int main(int argc, char **argv) {
  trainc::watchStandardOutput("trainc-emit");
  using namespace trainc::tools;
  return runTool(
      argc, argv,
      {"trainc-emit",
       "usage: trainc-emit [FILE.mlir] -o FOLDER [options]\n\n"
       "Emits the source folder of a planned module, from the standard input without a file.\n",
       {toolOption("o", &EmitOptions::output, "FOLDER", "where the source goes"),
        toolOption("target", &EmitOptions::target, "cpu|cuda", "for modules that do not say it")}},
      emit);
}
