// SPDX-License-Identifier: Apache-2.0
//
// What steps share (step.h).
#include "dialects/kernel/step.h"
#include "mlir/IR/BuiltinTypes.h"
#include <numeric>

using namespace mlir;

namespace trainc {

int64_t kernel::StepCost::bytes() const {
  return std::accumulate(writes.begin(), writes.end(),
                         std::accumulate(reads.begin(), reads.end(), int64_t(0)));
}

} // namespace trainc
