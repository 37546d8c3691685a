// SPDX-License-Identifier: Apache-2.0
//
// trainc: compiles a forward ONNX model into a training program.
#include "compiler/driver.h"
#include "compiler/standard_output.h"
#include "compiler/version.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  using namespace trainc;
  watchStandardOutput("trainc");
  Report report;
  const CommandLine line = parseOptions(argc, argv, report);
  const std::optional<Options> &options = line.options;
  if (options && (line.wantsVersion || !line.page.empty())) {
    llvm::outs() << (line.wantsVersion ? describeBuild(findInstallation()) : line.page);
    return static_cast<int>(ExitCode::ok);
  }
  if (options && options->model.empty() && !options->printDocumentation && !options->listOperators)
    (void)report.error(ExitCode::usage, Subject::ofProgram("trainc"), "no model given",
                       "trainc model.onnx -o out, or trainc --help");
  if (!report.empty()) {
    report.print(llvm::errs(), messageFormatAmong(argc, argv));
    return static_cast<int>(report.exitCode());
  }
  return static_cast<int>(compileModel(*options));
}
