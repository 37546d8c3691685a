// SPDX-License-Identifier: Apache-2.0
//
// Checks of what the compiler itself promises, on in every build. One that fails ends
// the process: what the pass made so far is not a program. The message names the pass, the
// operation, and the file that its module was written to.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/Twine.h"
#include <functional>
#include <string>

namespace trainc {

/// Reports and ends the process. `op` is the operation at which it showed; a value's or a type's
/// error is that of the operation being worked on.
[[noreturn]] void internalError(mlir::Operation *op, const llvm::Twine &message);
[[noreturn]] void internalError(const llvm::Twine &message);

inline void check(bool holds, mlir::Operation *op, const llvm::Twine &message) {
  if (!holds)
    internalError(op, message);
}

/// What internal errors are told about the process, by who runs passes.
struct InternalErrorContext {
  std::string pass;       // running now, `emit` after the last
  std::string dumpFolder; // for the module of the operation; empty: it is not written
  /// Prints the message where the process has a way of its own; then the process ends with 1.
  std::function<void(const std::string &message)> report;
};
InternalErrorContext &internalErrorContext();

} // namespace trainc
