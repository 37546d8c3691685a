// SPDX-License-Identifier: Apache-2.0
//
// How far f32 values of a function may be from its f64 values. A fixed tolerance is too strict
// where terms cancel and hides errors elsewhere; so the function is evaluated in f64 again and
// again while each operation errs at random by as much as its f32 form may (Monte Carlo
// arithmetic, D. S. Parker 1997), and the largest deviation of each element is measured:
//
//   pointwise     by the units in the last place that its record states
//   cast          half a unit, to floats; also constants, which f32 rounds
//   accumulation  an operation of n flops per element: each term by n half units, the bound of a
//   sum
//                 in any order, then half a unit
//   movement      not at all, so that f32 must give these elements exactly
//
// A composite errs as its parts do. Where a comparison or a conversion to integers is too close to
// call, samples fall on both sides. Known weakness: errors are sampled, so the bound is a
// likely one, to be taken times a factor; overflow and subnormal numbers are not modelled.
#pragma once

#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <vector>

namespace trainc {

struct RoundedResults {
  std::vector<nn::Tensor> exact;              // of each result, as f64 has it
  std::vector<std::vector<double>> deviation; // largest of each element; absolute
};

/// Results of `function` for `arguments`, and how far `samples` evaluations went from them.
mlir::FailureOr<RoundedResults> sampleRounding(mlir::func::FuncOp function,
                                               llvm::ArrayRef<nn::Tensor> arguments, int samples);

/// `function` with f32 for every float, without its check attributes.
mlir::OwningOpRef<mlir::func::FuncOp> narrowed(mlir::func::FuncOp function);

} // namespace trainc
