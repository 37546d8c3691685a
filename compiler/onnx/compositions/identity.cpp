// SPDX-License-Identifier: Apache-2.0
//
// ONNX Identity.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importIdentity(OnnxNode &node) { return SmallVector<Value>{node.input(0)}; }

static OnnxRegistration identity("Identity", 1, importIdentity);

} // namespace trainc::nn
