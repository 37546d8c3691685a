// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def CrossEntropyOp : Structured<"cross_entropy", [Differentiable, Decomposable, CountingMean, InfersShape]> {
  let summary = "Mean cross-entropy of rows of logits against class labels";
  let description = [{
    `mean over rows r with labels[r] != ignore_index of logsumexp(logits[r]) - logits[r, labels[r]]`
    in nats, every row where there is no ignore_index: PyTorch's `F.cross_entropy` with its default reduction. Logits have any
    number of leading dimensions; labels have exactly those. All rows ignored: NaN, as PyTorch.

    cross_entropy-c1: labels have the shape of logits without the last dimension.

        %loss = nn.cross_entropy %logits, %labels : (tensor<8x10xf32>, tensor<8xi64>) -> tensor<f32>
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntegerTensor:$labels, OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs NN_FloatTensor:$result);
}
