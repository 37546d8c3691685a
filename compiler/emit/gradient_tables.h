// SPDX-License-Identifier: Apache-2.0
//
// The tables of trainer.cpp that say which gradients a function tells of, and where they are.
#pragma once

#include "compiler/emit/source_writer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>

namespace trainc {

/// Prints the buckets of a function; the `bucket_list` of them: `buckets_of_backward_0`, or
/// nothing where it has none.
std::string printBuckets(mlir::func::FuncOp function, SourceWriter &writer);

} // namespace trainc
