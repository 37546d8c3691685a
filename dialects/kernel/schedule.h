// SPDX-License-Identifier: Apache-2.0
//
// What follows from a schedule (schedule.td), for those who write and print it.
#pragma once

#include "dialects/kernel/kernel.h"
#include "dialects/kernel/loop_nest.h"
#include "llvm/ADT/DenseSet.h"

namespace trainc::kernel {

constexpr int64_t warpThreads = 32;
constexpr int64_t vectorElements = 4;       // of a vector access: 16 bytes of f32
constexpr int64_t narrowVectorElements = 8; // 16 bytes of 16-bit floats

/// What a device function of this stage runs. Parts: the reduction and what it needs; total: what
/// is stored after it.
llvm::DenseSet<mlir::Operation *> operationsOfStage(FunctionOp function, Stage stage);

/// The arguments whose rows threads hold, since several phases read them.
llvm::SmallVector<unsigned> heldBuffers(const LoopNest &nest, int64_t vector);

/// Results that a block works on at a time.
int64_t resultsOfBlock(DeviceFunctionAttr device);

} // namespace trainc::kernel
