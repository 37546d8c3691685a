// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ConstantOp : Structured<"constant", [NotDifferentiable, Interpreted, ConstantLike, InfersShape]> {
  let summary = "A tensor known at compile time";
  let description = [{
        %1 = nn.constant dense<[0, 2, 4]> : tensor<3xi64>
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}
