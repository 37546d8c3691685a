// SPDX-License-Identifier: Apache-2.0
//
// Internal errors (internal_error.h).
#include "dialects/errors/internal_error.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace mlir;

namespace trainc {

InternalErrorContext &internalErrorContext() {
  static InternalErrorContext context;
  return context;
}

/// Writes the module around the operation, in the form that any IR has; the file's name.
static std::string dumpModule(Operation *op, const InternalErrorContext &context) {
  if (!op || context.dumpFolder.empty())
    return "";
  while (Operation *parent = op->getParentOp())
    op = parent;
  llvm::sys::fs::create_directories(context.dumpFolder);
  llvm::SmallString<256> path(context.dumpFolder);
  llvm::sys::path::append(path, context.pass + "-failed.mlir");
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return "";
  op->print(stream, OpPrintingFlags().printGenericOpForm().enableDebugInfo());
  stream.close();
  bool isWhole = !stream.has_error();
  stream.clear_error();
  return isWhole ? path.str().str() : "";
}

void internalError(Operation *op, const llvm::Twine &message) {
  static bool isReporting = false; // printing a broken operation may fail again
  InternalErrorContext context = internalErrorContext();
  std::string text = "internal error";
  if (!context.pass.empty())
    text += " in " + context.pass;
  if (op) {
    llvm::raw_string_ostream stream(text);
    stream << " at " << op->getName() << " (" << op->getLoc() << ")";
  }
  text += ": " + message.str();
  if (!isReporting) {
    isReporting = true;
    if (std::string file = dumpModule(op, context); !file.empty())
      text += "; the IR is in " + file;
  }
  if (context.report)
    context.report(text);
  else
    llvm::errs() << "error: " << text << "\n";
  llvm::errs().flush();
  llvm::outs().flush();
  std::_Exit(1);
}

void internalError(const llvm::Twine &message) { internalError(nullptr, message); }

} // namespace trainc
