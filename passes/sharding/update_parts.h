// SPDX-License-Identifier: Apache-2.0
//
// Which kernels of @update a rank may run for its own part of the flat arenas: those that compute
// each element of a run from elements at the same place and from scalars.
#pragma once

#include "dialects/kernel/kernel.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace trainc {

/// The elements of the flat arenas that a launch works on.
struct ArenaRange {
  int64_t first, count;
};

/// The range of each launch; groups of parameters with runs of one length share a kernel. Empty
/// where some step of @update needs parameters or states as a whole (LAMB's norms of parameters),
/// so that none can be cut.
using PartedLaunches = llvm::DenseMap<mlir::Operation *, ArenaRange>;
PartedLaunches updatesInParts(mlir::ModuleOp module);
/// The symbols of the kernels of these launches, which have no others.
llvm::StringSet<> kernelsOf(const PartedLaunches &launches);

} // namespace trainc
