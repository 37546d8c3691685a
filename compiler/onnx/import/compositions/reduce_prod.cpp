// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReduceProd.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceProd(OnnxNode &node) {
  return importReduction(node, 18, buildProduct);
}

static OnnxRegistration reduceProd =
    OnnxRegistration("ReduceProd", 1, importReduceProd).mustKnow(1, "axes");

} // namespace trainc::nn
