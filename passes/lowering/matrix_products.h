// SPDX-License-Identifier: Apache-2.0
//
// First half of fuse: nn.matmul and nn.scatter_add become kernel operations that
// read strided views in place.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace trainc {

void formMatrixProducts(mlir::func::FuncOp function);

} // namespace trainc
