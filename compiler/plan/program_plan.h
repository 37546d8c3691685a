// SPDX-License-Identifier: Apache-2.0
//
// The plan of a program, from the tables of the passes and from the model that was read.
#pragma once

#include "compiler/onnx/reader.h"
#include "runtime/plan/plan.h"

namespace trainc {

/// Of a module after plan-memory.
plan programPlan(const Model &model, mlir::ModuleOp module, llvm::StringRef target);

} // namespace trainc
