// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ConcatOp : Structured<"concat", [Differentiable, Interpreted, InfersShape]> {
  let summary = "Tensors joined along a dimension";
  let description = [{
    concat-c1: at least one operand; dimension is within the rank.
    concat-c2: operands agree in rank, element type and all other sizes.

        %1 = nn.concat %a, %b {dimension = 1 : i64} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$dimension);
  let results = (outs NN_Tensor:$result);
  let extraClassDeclaration = [{ static double flopsPerElement() { return 1; } }];
}
