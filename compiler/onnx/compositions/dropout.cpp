// SPDX-License-Identifier: Apache-2.0
//
// ONNX Dropout in inference mode: nothing.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importDropout(OnnxNode &node) {
  const char *advice = "export the module in inference mode (module.eval()), or with dropout 0";
  if (node.outputUsed(1))
    return node.error("its mask is used, which is not supported", advice);
  if (node.hasInput(2)) { // training mode
    auto training = node.integers(2);
    if (!training || training->size() != 1)
      return node.error("its mode must be known when the model is compiled", advice);
    Tensor ratio = node.constant(1);
    bool noRatio = ratio && ratio.count() == 1 && ratio.real(0) == 0;
    if ((*training)[0] && !noRatio)
      return node.error("dropout in training mode is not supported yet", advice);
  }
  return SmallVector<Value>{node.input(0)};
}

static OnnxRegistration dropout("Dropout", 7, importDropout);

} // namespace trainc::nn
