// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def SoftmaxOp : Structured<"softmax", [Differentiable, Decomposable, InfersShape]> {
  let summary = "Softmax over the last dimension";
  let description = [{
    Shifted by the row's largest element, so it does not overflow. A row that is
    -inf throughout gives NaN, as everywhere, or zeros where `masked_to_zero` is
    set: attention over a sequence that is padding alone.

    softmax-c1: rank at least 1, float.

        %1 = nn.softmax %x : (tensor<8x10xf32>) -> tensor<8x10xf32>
  }];
  let arguments = (ins NN_FloatTensor:$x, UnitAttr:$masked_to_zero);
  let results = (outs NN_FloatTensor:$result);
}
