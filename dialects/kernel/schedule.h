// SPDX-License-Identifier: Apache-2.0
//
// What follows from a schedule (schedule.td), for those who write and print it.
#pragma once

#include "dialects/kernel/kernel.h"
#include "llvm/ADT/DenseSet.h"

namespace trainc::kernel {

constexpr int64_t warpThreads = 32;
constexpr int64_t vectorElements = 4; // of a vector access: 16 bytes of f32

/// What a device function of this stage runs. Parts: the reduction and what it needs; total: what
/// is stored after it.
llvm::DenseSet<mlir::Operation *> operationsOfStage(FunctionOp function, Stage stage);

/// Results that a block works on at a time.
int64_t resultsOfBlock(DeviceFunctionAttr device);

} // namespace trainc::kernel
