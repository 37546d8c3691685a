// SPDX-License-Identifier: Apache-2.0
//
// What the state of PyTorch's module has that is no parameter under a name: rows of names and
// numbers, which compiler/emit/program_tables.cpp reads and writes.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace trainc::train {

/// Elements of its tensors and their places in parameters. None: the attribute is not there.
mlir::ArrayAttr statePiecesOf(mlir::ModuleOp module);
void setStatePieces(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> rows);
/// Tensors that are compiled into the program, with their checksums.
mlir::ArrayAttr stateConstantsOf(mlir::ModuleOp module);
void setStateConstants(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> rows);

} // namespace trainc::train
