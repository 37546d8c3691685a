// SPDX-License-Identifier: Apache-2.0
//
// Which gradients of a function the ranks of a host add at once. A function's buckets follow each
// other in the order of its steps: each is whole after a step. Where no rank keeps all gradients
// (--shard gradients) the ranks meet there and then read it from each other, so it may be written
// over once they have met again, after the next bucket or at the function's end. Where each rank
// keeps all of them, others may add a bucket from there on while the function goes on: no later
// step reads or writes it.
//
// Where parameters are updated in the backward pass (--update-in-backward) a bucket is whole when
// no later step reads what its gradients belong to, either; it is used up there.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace trainc {

/// Whether no rank keeps all gradients: what the driver asks for after the import.
bool shardsGradients(mlir::ModuleOp module);
void shardGradients(mlir::ModuleOp module);

/// Whether parameters change in the backward pass: what the driver asks for, too.
bool updatesInBackward(mlir::ModuleOp module);
void updateInBackward(mlir::ModuleOp module);
/// Either of them: gradients are activations, and no arena has all that a function makes.
bool gradientsAreActivations(mlir::ModuleOp module);
/// Whether all totals of sharded gradients are gathered for the update, at the end of the
/// activations arena: on CUDA, where ranks do not see each other's memory.
bool gathersGradients(mlir::ModuleOp module);

struct GradientBucket {
  int step;  // after which it is whole; a number of the plan
  int until; // the last step that must leave it; the return's is one too
  llvm::SmallVector<unsigned> gradients; // results of the function, in the order of their steps
};
using GradientBuckets = llvm::SmallVector<GradientBucket>;

/// Whether ranks sum a result: gradients, new values of buffers, the step's totals.
bool isSummed(mlir::func::FuncOp function, unsigned result);

int64_t bytesOfResults(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> results);

/// Marks the steps of an ordered function after which buckets are whole.
void formGradientBuckets(mlir::func::FuncOp function);
/// By these marks; none where an arena has all gradients.
GradientBuckets gradientBucketsOf(mlir::func::FuncOp function);
/// The buckets that an emitted function tells of: these, or those of a step in one piece, where
/// each rank keeps all gradients.
GradientBuckets bucketsToldBy(mlir::func::FuncOp function);

} // namespace trainc
