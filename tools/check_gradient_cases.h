// SPDX-License-Identifier: Apache-2.0
//
// The cases of trainc-check-gradient: functions @numbers_* of a test file, each
// made into a model, run through the passes and merged into one module.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

/// A tensor of a case at a fixed place of an arena.
struct CheckTensor {
  std::string name;
  mlir::RankedTensorType type;
  int arena = -1; // -1: not there
  int64_t offset = 0;
};

struct CheckArgument {
  CheckTensor value, gradient;   // gradient: none for what is not differentiated
  mlir::DenseElementsAttr given; // check.inputs; null: pseudo-random
};

struct CheckCase {
  std::string name;
  mlir::func::FuncOp function; // as in the file, for the interpreter
  std::vector<CheckArgument> arguments;
  std::vector<CheckTensor> results;
  std::vector<mlir::DenseElementsAttr> expected; // check.results; empty: not given
  CheckTensor loss;
  CheckTensor randomKey;                   // of forward_backward; evaluate's is 0
  int forwardBackward = -1, evaluate = -1; // numbers of the entry functions
  std::shared_ptr<CheckCase> f32;          // the same function of f32; null where not asked for
};

/// The text of a file's sections that hold a line `// NUMBERS`.
std::vector<std::string> numberSections(llvm::StringRef text);

/// Builds the case of `function` and moves its planned code into `program`, with `forwardOnly` that
/// of the values alone. Errors are diagnostics.
std::optional<CheckCase> buildCase(mlir::func::FuncOp function, mlir::ModuleOp program,
                                   std::vector<std::string> &entries, bool forwardOnly = false);

} // namespace trainc
