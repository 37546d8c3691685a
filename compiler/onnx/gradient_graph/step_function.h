// SPDX-License-Identifier: Apache-2.0
//
// A whole step of training on one micro-batch as one function: forward pass, gradients and update,
// with a tensor for each parameter and state in the place of the flat arenas.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <optional>
#include <string>
#include <vector>

namespace trainc {

struct StepInput {
  std::string name;
  std::optional<double> number; // what a scalar is unless somebody says otherwise
};

struct StepFunction {
  mlir::OwningOpRef<mlir::ModuleOp> module; // has the function alone
  mlir::func::FuncOp function;
  std::vector<StepInput> inputs;    // its arguments
  std::vector<std::string> outputs; // its results
};

/// Of a module after decompose, which stays as it is.
StepFunction joinStep(mlir::ModuleOp module);

} // namespace trainc
