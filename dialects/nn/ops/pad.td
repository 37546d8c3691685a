// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def PadOp : Structured<"pad", [Differentiable, Interpreted, InfersShape]> {
  let summary = "Zeros before, after and between elements";
  let description = [{
    Per dimension `low` zeros, then the elements with `interior` zeros between
    each two, then `high` zeros. The gradient of slice with positive strides.

    pad-c1: low, high and interior have one nonnegative entry per dimension.

        %1 = nn.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 1>, interior = array<i64: 0, 0>}
            : (tensor<2x3xf32>) -> tensor<2x5xf32>
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior);
  let results = (outs NN_Tensor:$result);
  let extraClassDeclaration = [{ static double flopsPerElement() { return 1; } }];
}
