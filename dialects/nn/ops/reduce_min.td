// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ReduceMinOp : Structured<"reduce_min", [Differentiable, Interpreted, InfersShape]> {
  let summary = "Over some dimensions: smallest element";
  let description = [{
    The reduced dimensions are dropped (`keep` is a broadcast or reshape after it).

        %1 = nn.reduce_min %0 {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>

    reduce_min-c1: dimensions are strictly increasing and within the rank.
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dimensions);
  let results = (outs NN_Tensor:$result);
}
