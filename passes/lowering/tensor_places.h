// SPDX-License-Identifier: Apache-2.0
//
// What the conventions of entry functions (docs/architecture.md) say about
// arguments, results and their places.
#pragma once

#include "dialects/kernel/tensor_bytes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace trainc {

/// `train.kind` of an argument or result, empty where it has none.
llvm::StringRef argumentKind(mlir::func::FuncOp function, unsigned index);
llvm::StringRef resultKind(mlir::func::FuncOp function, unsigned index);

/// The argument whose memory a result takes: new parameters and optimizer states.
std::optional<unsigned> overwrittenArgument(mlir::func::FuncOp function, unsigned result);

/// Whether the entry works on flat arenas, as @update does.
bool isUpdate(mlir::func::FuncOp function);

/// Readable name of an argument, or of a step's result.
std::string tensorName(mlir::Value value);

} // namespace trainc
