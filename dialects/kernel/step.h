// SPDX-License-Identifier: Apache-2.0
//
// The answers of a step (step.td) as plain data.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <variant>

namespace trainc::kernel {

/// A constant of the emitted source that a call names; equal ones are one.
struct StepConstant {
  std::string type;                      // `matmul_shape`
  std::string name;                      // `product_8x16x4`
  std::string meaning;                   // comment above the constants of the type
  llvm::SmallVector<std::string> fields; // designated initialisers, a line each
};

/// The address of a tensor (nullptr where it is null), a number (integer, float, bool or
/// list of i64), or a constant.
using StepArgument = std::variant<mlir::Value, mlir::Attribute, StepConstant>;

struct StepCall {
  std::string function; // a function of the runtime, or the symbol of calledKernel
  std::string library;  // declared in runtime/kernels/<library>.h; empty for a kernel of the module
  llvm::SmallVector<StepArgument> arguments; // without the scratch, which comes last
};

struct StepCost {
  double flops = 0;
  // Bytes by operand and by result. What is read again in a later loop counts again.
  llvm::SmallVector<int64_t> reads, writes;

  int64_t bytes() const;
};

/// A contiguous matrix with lines of `length` elements, which a step has in registers.
struct SummableLines {
  mlir::Value tensor;
  int64_t length;
};

class EpilogueOpInterface;
struct RowPitch;

} // namespace trainc::kernel
