// SPDX-License-Identifier: Apache-2.0
//
// What steps share (step.h), and how much memory tensors take (tensor_bytes.h).
#include "dialects/kernel/step.h"
#include "dialects/kernel/tensor_bytes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <numeric>

using namespace mlir;

namespace trainc {

int64_t elementBytes(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

int64_t bytesOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return type.getNumElements() * elementBytes(type.getElementType());
}

int64_t kernel::StepCost::bytes() const {
  return std::accumulate(writes.begin(), writes.end(),
                         std::accumulate(reads.begin(), reads.end(), int64_t(0)));
}

} // namespace trainc
