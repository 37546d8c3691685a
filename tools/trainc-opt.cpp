// SPDX-License-Identifier: Apache-2.0
//
// trainc-opt: runs passes one by one on textual IR, such as the files of trainc --dump-ir. The
// passes are those linked in; each registers itself.
#include "compiler/ir_file.h"
#include "compiler/output/write_file.h"
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
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using trainc::ExitCode;

/// LLVM's shared library registers some 900 options of its code generators when it is loaded:
/// before main, unlike ours.
static void hideForeignOptions() {
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (!StringRef(name).starts_with("help"))
      option->setHiddenFlag(llvm::cl::ReallyHidden);
}

/// The lists of canonicalize, the only ones, are of names.
static bool hasBracketInList(StringRef word) {
  constexpr StringLiteral list = "able-patterns=";
  for (size_t at = word.find(list); at != StringRef::npos; at = word.find(list, at + 1)) {
    StringRef names =
        word.drop_front(at + list.size()).take_until([](char c) { return c == ' ' || c == '}'; });
    if (names.find_first_of("([{'\"") != StringRef::npos)
      return true;
  }
  return false;
}

/// MLIR's parser of options looks for the end of a brace for ever, in lists for that of any bracket
/// and quote, and calls itself for each.
static bool canBeParsed(StringRef word) {
  constexpr size_t kMostBrackets = 2000;
  int open = 0;
  for (size_t i = 0; i < word.size() && open >= 0; ++i)
    if (word[i] == '\'' || word[i] == '"') {
      size_t end = word.find(word[i], i + 1);
      if (end == StringRef::npos)
        continue;
      if (word.slice(i, end).find_first_of("{}") != StringRef::npos)
        return false;
      i = end;
    } else {
      open += word[i] == '{' ? 1 : word[i] == '}' ? -1 : 0;
    }
  auto isBracket = [](char c) { return c == '(' || c == '[' || c == '{'; };
  return open == 0 && !hasBracketInList(word) &&
         size_t(llvm::count_if(word, isBracket)) <= kMostBrackets;
}

static bool canBeParsed(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (StringRef word = argv[i]; word.starts_with("-") && !canBeParsed(word)) {
      llvm::errs()
          << "trainc-opt: " << word.split('=').first.take_front(80)
          << ": expects braces in pairs and outside of quotes, no bracket in a list, and at most "
             "2000 brackets, found others\n";
      return false;
    }
  return true;
}

static ExitCode write(StringRef path, StringRef text) {
  std::error_code error = trainc::writeWholeFile(path, text);
  if (!error)
    return ExitCode::ok;
  llvm::errs() << "trainc-opt: " << path << ": cannot be written: " << error.message()
               << "\n  try: -o with another file\n";
  return ExitCode::outputNotWritten;
}

static ExitCode run(StringRef inputName, StringRef outputName, DialectRegistry &registry) {
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
  if (!input) {
    llvm::errs() << "trainc-opt: " << message << "\n";
    return ExitCode::internalError;
  }
  auto asExitCode = [](LogicalResult result) {
    return succeeded(result) ? ExitCode::ok : ExitCode::internalError;
  };
  if (outputName == "-")
    return asExitCode(MlirOptMain(llvm::outs(), std::move(input), registry, config));
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (failed(MlirOptMain(stream, std::move(input), registry, config)))
    return ExitCode::internalError;
  return write(outputName, stream.str());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  trainc::watchStandardOutput("trainc-opt");
  hideForeignOptions();
  if (!canBeParsed(argc, argv))
    return 1;
  DialectRegistry registry;
  registry.insert<trainc::nn::NNDialect, trainc::train::TrainDialect, trainc::kernel::KernelDialect,
                  func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  registerCanonicalizerPass();
  registerCSEPass();
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "trainc's passes, one by one\n", registry);
  return static_cast<int>(run(input, output, registry));
}
