// SPDX-License-Identifier: Apache-2.0
//
// ONNX Identity, which is also what PyTorch's default exporter writes for detach().
#include "dialects/nn/nn.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importIdentity(OnnxNode &node) {
  Value x = node.input(0);
  bool isDetached = node.stopsGradients() && isa<FloatType>(getElementTypeOrSelf(x));
  return SmallVector<Value>{isDetached ? node.builder().create<DetachOp>(x) : x};
}

static OnnxRegistration identity("Identity", 1, importIdentity);

} // namespace trainc::nn
