// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def BatchNormOp : Structured<"batch_norm", [Differentiable, Decomposable, InfersShape]> {
  let summary = "Normalisation over all dimensions but the second, without scale and shift";
  let description = [{
    `(x - mean) / sqrt(variance + epsilon)` of each channel, biased variance: batch normalisation in
    training. Scale and shift, and what becomes of running statistics, are ordinary operations.

        %y = nn.batch_norm %x {epsilon = 1.0e-5 : f64} : (tensor<8x16x4x4xf32>) -> tensor<8x16x4x4xf32>

    With `all_ranks` mean and variance are those of the batches of all ranks (nn.mean_over_ranks).

    batch_norm-c1: rank at least 2, float; epsilon is not negative.
  }];
  let arguments = (ins NN_FloatTensor:$x, F64Attr:$epsilon, UnitAttr:$all_ranks);
  let results = (outs NN_FloatTensor:$result);
}
