// SPDX-License-Identifier: Apache-2.0
//
// How much memory tensors take; i1 takes a byte.
#pragma once

#include "mlir/IR/Types.h"
#include <cstdint>

namespace trainc {

int64_t elementBytes(mlir::Type element);
int64_t bytesOf(mlir::Type tensor);

} // namespace trainc
