// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ReverseOp : Structured<"reverse", [Differentiable, Interpreted, MovesElements, InfersShape]> {
  let summary = "Elements in reverse order along dimensions";
  let description = [{
    reverse-c1: dimensions are distinct and within the rank.

        %1 = nn.reverse %x {dimensions = array<i64: 0>} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dimensions);
  let results = (outs NN_Tensor:$result);
}
