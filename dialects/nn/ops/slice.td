// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def SliceOp : Structured<"slice", [Differentiable, Interpreted, MovesElements, InfersShape]> {
  let summary = "A strided part of a tensor";
  let description = [{
    `result[i] = x[starts + i * strides]`, `sizes` elements per dimension; a stride may be negative.

    slice-c1: starts, sizes and strides have one entry per dimension.
    slice-c2: sizes are not negative, strides not zero, and every element read is within bounds.

        %1 = nn.slice %x {sizes = array<i64: 2, 3>, starts = array<i64: 0, 1>, strides = array<i64: 1, 1>}
            : (tensor<2x8xf32>) -> tensor<2x3xf32>
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides);
  let results = (outs NN_Tensor:$result);
  let hasFolder = 1;
}
