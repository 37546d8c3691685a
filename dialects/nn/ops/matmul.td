// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def MatmulOp : Structured<"matmul", [Differentiable, Interpreted, InfersShape, Library]> {
  let summary = "Batched matrix product";
  let description = [{
    `result[b..., i, j] = sum_k a[b..., i, k] * b[b..., k, j]`; with `transpose_a`
    the last two dimensions of a are (k, i), likewise for b. Batch dimensions are
    equal; broadcasts are explicit. The sums of elements of 16 bits are in f32, and so is the result.

        %2 = nn.matmul %0, %1 {transpose_b} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>

    matmul-c1: operands have one rank, at least 2, and one float element type.
    matmul-c2: batch dimensions are equal.
    matmul-c3: the contracted sizes are equal.
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs NN_FloatTensor:$result);
}
