// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def TransposeOp : Structured<"transpose", [Differentiable, Interpreted, MovesElements, InfersShape]> {
  let summary = "Permutation of dimensions";
  let description = [{
    Result dimension i is operand dimension `permutation[i]`.

    transpose-c1: permutation is one of the operand's dimensions.

        %1 = nn.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$result);
  let hasFolder = 1;
}
