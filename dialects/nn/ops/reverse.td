// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ReverseOp : Structured<"reverse", [Differentiable, Interpreted, MovesElements, InfersShape]> {
  let summary = "Elements in reverse order along dimensions";
  let description = [{
    reverse-c1: dimensions are distinct and within the rank.
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dimensions);
  let results = (outs NN_Tensor:$result);
}
