// SPDX-License-Identifier: Apache-2.0
//
// trainc-check-gradient --records: f32 values of every pointwise operation that
// takes floats, in units in the last place.
#pragma once

#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <vector>

namespace trainc {

struct RecordCheck {
  std::string name;
  nn::Accuracy accuracy;
  mlir::func::FuncOp function; // operands -> the value in f32, and in f64 for the same operands
};

/// One function for every registered pointwise operation of floats; `module` owns them. Their
/// check.inputs hold special values, every exponent, and numbers of ordinary size.
std::vector<RecordCheck> recordFunctions(mlir::MLIRContext &context,
                                         mlir::OwningOpRef<mlir::ModuleOp> &module);

/// Distance of an f32 value from the exact one, given the operands, in the record's unit.
double errorInUnits(double found, double exact, llvm::ArrayRef<double> operands, bool cancels);

} // namespace trainc
