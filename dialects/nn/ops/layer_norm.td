// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def LayerNormOp : Structured<"layer_norm", [Differentiable, Decomposable, InfersShape]> {
  let summary = "Normalisation over the last dimension, without scale and shift";
  let description = [{
    `(x - mean) / sqrt(variance + epsilon)`, biased variance. Scale and shift are
    ordinary pointwise operations after it: fusion sees them anyway.

    layer_norm-c1: rank at least 1, float; epsilon is not negative.

        %1 = nn.layer_norm %x {epsilon = 1.0e-05 : f64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
  }];
  let arguments = (ins NN_FloatTensor:$x, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$result);
}
