// SPDX-License-Identifier: Apache-2.0
//
// The tables of trainer.cpp that say what the stages of a pipeline do.
#pragma once

#include "compiler/emit/source_writer.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace trainc {

/// The constant `step_pipeline` and what it refers to; nothing where a step is not cut. `inputs`
/// are the names of the program's inputs in the order of its table.
void printPipelineTables(mlir::ModuleOp module, llvm::ArrayRef<std::string> inputs,
                         SourceWriter &writer);

} // namespace trainc
