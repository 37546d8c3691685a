// SPDX-License-Identifier: Apache-2.0
//
// The base of passes with options.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/options/option_reader.h"
#include "runtime/name_pattern.h"
#include "llvm/ADT/SmallVector.h"

namespace trainc {

/// A pass of modules whose options take any text (no lists: MLIR looks for the end of a bracket in
/// them for ever), so that the pass itself can say what is wrong
/// with them, as trainc does: before the first pass of a pipeline runs, in a line that names pass,
/// option and value.
class CheckedPass : public mlir::OperationPass<mlir::ModuleOp> {
protected:
  explicit CheckedPass(mlir::TypeID id) : OperationPass(id) {}
  CheckedPass(const CheckedPass &other) : OperationPass(other) {}

  /// `form` is what help says of the value, such as `number`.
  struct TextOption : Option<std::string> {
    TextOption(CheckedPass &pass, llvm::StringRef name, llvm::StringRef form,
               const std::string &otherwise, llvm::StringRef help)
        : Option(pass, name, llvm::cl::desc(help), llvm::cl::value_desc(form),
                 llvm::cl::init(otherwise)) {
      pass.known.push_back(this);
    }
    using Option::operator=;
  };
  /// Reads every option of the pass, for what the reader has to say.
  virtual void checkOptions(OptionReader &reader) const = 0;

  /// For values that are checked already.
  static OptionReader silentReader() {
    return {kOfPass, [](const OptionProblem &) {}};
  }

  /// An option that is a pattern of names, or empty.
  static void checkPattern(OptionReader &reader, const TextOption &option);
  /// The pattern, which is checked already; nothing where the option is empty.
  static std::optional<name_pattern> patternOf(const TextOption &option);

  mlir::LogicalResult initialize(mlir::MLIRContext *context) final;
  mlir::LogicalResult
  initializeOptions(llvm::StringRef options,
                    mlir::function_ref<mlir::LogicalResult(const llvm::Twine &)> complain) final;

private:
  llvm::SmallVector<TextOption *> known;
};

} // namespace trainc
