// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ReshapeOp : Structured<"reshape", [Differentiable, Interpreted, MovesElements]> {
  let summary = "The same elements in another shape";
  let description = [{
    reshape-c1: element counts and types agree.

        %1 = nn.reshape %x : (tensor<2x6xf32>) -> tensor<3x4xf32>
  }];
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}
