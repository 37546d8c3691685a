// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ReshapeOp : Structured<"reshape", [Differentiable, Interpreted, MovesElements]> {
  let summary = "The same elements in another shape";
  let description = [{
    reshape-c1: element counts and types agree.
  }];
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}
