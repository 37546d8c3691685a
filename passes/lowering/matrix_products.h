// SPDX-License-Identifier: Apache-2.0
//
// What fuse and fuse-epilogues begin with: nn.matmul and nn.scatter_add become
// kernel operations that read strided views in place.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace trainc {

/// Erases dead operations first: a use that nobody needs would keep a view alive. Leaves what it
/// formed before as it is.
void formMatrixProducts(mlir::func::FuncOp function);

} // namespace trainc
