// SPDX-License-Identifier: Apache-2.0
//
// How a reduction is cut into parts that run side by side on a device and leave
// partial results in the kernel's scratch. The cut depends on shapes alone, so
// results have the same bits on every device.
#pragma once

#include "dialects/kernel/kernel.h"

namespace trainc {

struct PartialResults {
  int64_t parts = 1; // 1: not cut
  int64_t share = 0; // rows of a part; 0: parts are interleaved
  /// Where the partial results of each reduction begin in scratch, part after part.
  llvm::SmallVector<int64_t> offsets;
  int64_t bytes = 0;
};

/// The only kernel.reduce of a kernel without kernel.map; null where there are more.
kernel::ReduceOp onlyReduction(kernel::FunctionOp function);

/// Kernels of form column or full are cut where they have one kernel.reduce alone.
PartialResults partialResults(kernel::FunctionOp function);

} // namespace trainc
