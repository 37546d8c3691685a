// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def LogSoftmaxOp : Structured<"log_softmax", [Differentiable, Decomposable, InfersShape]> {
  let summary = "LogSoftmax over the last dimension";
  let description = [{
    Shifted by the row's largest element, so it does not overflow. A row that is
    -inf throughout gives NaN, as everywhere.

    log_softmax-c1: rank at least 1, float.

        %1 = nn.log_softmax %x : (tensor<8x10xf32>) -> tensor<8x10xf32>
  }];
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$result);
}
