// SPDX-License-Identifier: Apache-2.0
//
// nn.iota. ONNX Range is folded by the reader.
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult IotaOp::verify() {
  int64_t rank = getResult().getType().getRank();
  if (static_cast<int64_t>(getDimension()) < 0 || static_cast<int64_t>(getDimension()) >= rank)
    return emitOpError("dimension ") // iota-c1
           << static_cast<int64_t>(getDimension()) << " is out of range for rank " << rank;
  return success();
}

double IotaOp::flops() { return 0; }

FailureOr<Tensor> IotaOp::interpret(ArrayRef<Tensor>) {
  auto type = getResult().getType();
  int64_t stride = computeStrides(type.getShape())[getDimension()];
  std::vector<int64_t> values(type.getNumElements());
  for (auto [i, value] : llvm::enumerate(values))
    value = static_cast<int64_t>(i) / stride % type.getDimSize(getDimension());
  return Tensor::ofIntegers(type, values);
}

} // namespace trainc::nn
