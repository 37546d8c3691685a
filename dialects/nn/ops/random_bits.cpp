// SPDX-License-Identifier: Apache-2.0
//
// nn.random_bits, what every random operator of ONNX is made of
// (compiler/onnx/import/compositions/random.h).
#include "dialects/nn/nn.h"
#include "runtime/kernels/random.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult RandomBitsOp::verify() {
  auto type = getResult().getType();
  if (getKeys() && getKeys().getType() != type) // random_bits-c1
    return emitOpError("keys have the type of the result, found ") << getKeys().getType();
  auto bits = static_cast<int64_t>(getBits()), stream = static_cast<int64_t>(getStream());
  if (bits < 1 || bits > 63) // random_bits-c2
    return emitOpError("makes 1 to 63 bits, found ") << bits;
  if (stream < 0) // random_bits-c3
    return emitOpError("stream ") << stream << " is negative";
  return success();
}

double RandomBitsOp::flops() {
  return flopsPerElement() * static_cast<double>(getResult().getType().getNumElements());
}

FailureOr<Tensor> RandomBitsOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  auto stream = static_cast<int64_t>(getStream());
  std::vector<int64_t> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t key = operands.empty() ? 0 : operands[0].integer(i);
    values.push_back(static_cast<int64_t>(random_word(key, stream, i) >> (64 - getBits())));
  }
  return Tensor::ofIntegers(type, values);
}

} // namespace trainc::nn
