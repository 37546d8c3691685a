// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def CastOp : Structured<"cast", [SameOperandsAndResultShape, Differentiable]> {
  let summary = "Change of element type";
  let description = [{
    Float to integer truncates; bool becomes 0 or 1; nonzero becomes true. The
    gradient of float to float is the cast back; other casts have none.

        %1 = nn.cast %x : (tensor<4xi64>) -> tensor<4xf32>
  }];
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$result);
  let hasFolder = 1;
  let extraClassDeclaration = [{ static double flopsPerElement() { return 1; } }];
}
