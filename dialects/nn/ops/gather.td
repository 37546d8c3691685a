// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def GatherOp : Structured<"gather", [Differentiable, Interpreted, InfersShape]> {
  let summary = "Rows of a table by index";
  let description = [{
    `result[i..., k...] = table[indices[i...], k...]`: the first dimension of the
    table is indexed. Indices are in [0, rows): the loader checks those that inputs
    hold; those that the model computes are normalised, clamped and checked where they
    are (compiler/onnx/graph/index_bounds.cpp), negative constants on import.

        %1 = nn.gather %table, %ids : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>

    gather-c1: the table has at least one dimension.
  }];
  let arguments = (ins NN_Tensor:$table, NN_IntegerTensor:$indices);
  let results = (outs NN_Tensor:$result);
  let extraClassDeclaration = "int64_t bytesRead(unsigned operand);";
}
