// SPDX-License-Identifier: Apache-2.0
//
// IR as files that people read and that parse to what they were: with locations, which later
// passes name things by, and with every constant, large ones in a section at the end.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace trainc {

/// Prints the module; the module itself stays as it is.
void writeIr(mlir::ModuleOp module, llvm::raw_ostream &stream);

/// Parses the file `path`, `-` for standard input. Null after errors, which are diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> readIr(llvm::StringRef path, mlir::MLIRContext &context);

/// The second half of readIr for programs that parse by other means: constants get their
/// elements back from the section.
std::unique_ptr<mlir::Pass> createReadConstantsPass();

} // namespace trainc
