// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def BroadcastOp : Structured<"broadcast", [Differentiable, Interpreted, MovesElements]> {
  let summary = "Repeat along dimensions";
  let description = [{
    Operand dimension i becomes result dimension `dimensions[i]`; its size is
    that of the result or 1.

        %1 = nn.broadcast %0 {dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<2x3x8xf32>

    broadcast-c1: as many dimensions as the operand's rank, strictly increasing, within the result's rank.
    broadcast-c2: each operand size is 1 or the result's.
    broadcast-c3: element types agree.
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dimensions);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}
