// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def IotaOp : Structured<"iota", [NotDifferentiable, Interpreted]> {
  let summary = "Index along one dimension";
  let description = [{
    `result[i0, ..., ik] = i_dimension` as the result's element type.

        %0 = nn.iota {dimension = 1 : i64} : () -> tensor<4x8xi64>

    iota-c1: dimension is within the result's rank.
  }];
  let arguments = (ins I64Attr:$dimension);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
}
