// SPDX-License-Identifier: Apache-2.0
//
// ONNX NonZero: the size of its result depends on values, so they must be known.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importNonZero(OnnxNode &node) {
  Tensor x = node.constant(0);
  SmallVector<int64_t> strides = computeStrides(x.shape());
  std::vector<int64_t> found, indices;
  for (int64_t i = 0, count = x.count(); i < count; ++i)
    if (x.real(i) != 0)
      found.push_back(i);
  for (auto [d, stride] : llvm::enumerate(strides))
    for (int64_t place : found)
      indices.push_back(place / stride % x.shape()[d]);
  int64_t shape[] = {x.type().getRank(), static_cast<int64_t>(found.size())};
  return SmallVector<Value>{node.integerLiteral(indices, shape)};
}

static OnnxRegistration nonZero =
    OnnxRegistration("NonZero", 9, importNonZero).gradientOf({}).mustKnow(0, "input");

} // namespace trainc::nn
