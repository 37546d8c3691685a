// SPDX-License-Identifier: Apache-2.0
//
// trainc: compiles a forward ONNX model into a training program.
#include "compiler/driver.h"
#include "compiler/installation.h"
#include "compiler/operator_table.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  using namespace trainc;
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream &stream) { stream << "trainc " << findInstallation().version << "\n"; });
  std::optional<Options> options = parseOptions(argc, argv);
  if (!options)
    return static_cast<int>(ExitCode::usage);
  if (options->printDocumentation) {
    llvm::outs() << optionsDocumentation();
    return 0;
  }
  if (options->listOperators) {
    llvm::outs() << operatorTable();
    return 0;
  }
  if (options->model.empty()) {
    llvm::errs() << "trainc: no model given\n  try: trainc model.onnx -o out, or trainc --help\n";
    return static_cast<int>(ExitCode::usage);
  }
  return static_cast<int>(compileModel(*options));
}
