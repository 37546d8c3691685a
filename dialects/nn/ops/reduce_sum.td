// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ReduceSumOp : Structured<"reduce_sum", [Differentiable, Interpreted, InfersShape]> {
  let summary = "Over some dimensions: sum of elements, in the fixed order that the kernel form defines";
  let description = [{
    The reduced dimensions are dropped (`keep` is a broadcast or reshape after it).

        %1 = nn.reduce_sum %0 {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>

    reduce_sum-c1: dimensions are strictly increasing and within the rank.
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dimensions);
  let results = (outs NN_Tensor:$result);
}
