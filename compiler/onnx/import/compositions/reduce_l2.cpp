// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReduceL2: the Euclidean norm, whose gradient at zero is zero, as PyTorch has it.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceL2(OnnxNode &node) { return importReduction(node, 18, buildNorm); }

static OnnxRegistration reduceL2 =
    OnnxRegistration("ReduceL2", 1, importReduceL2).mustKnow(1, "axes").takesFloats();

} // namespace trainc::nn
