// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ScatterAddOp : Structured<"scatter_add", [Differentiable, Interpreted, InfersShape, Library]> {
  let summary = "Rows added into a table by index";
  let description = [{
    `result = table; result[indices[i...], k...] += updates[i..., k...]`, repeated
    indices in ascending order of i: the gradient of gather.

    scatter_add-c1: updates have the shape of indices followed by the table's trailing dimensions.
    scatter_add-c2: table and updates agree in element type.

        %1 = nn.scatter_add %table, %ids, %updates : (tensor<100x8xf32>, tensor<2x4xi64>, tensor<2x4x8xf32>) -> tensor<100x8xf32>
  }];
  let arguments = (ins NN_FloatTensor:$table, NN_IntegerTensor:$indices, NN_FloatTensor:$updates);
  let results = (outs NN_FloatTensor:$result);
  let extraClassDeclaration = "int64_t bytesRead(unsigned operand);";
}
