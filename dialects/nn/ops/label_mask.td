// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def LabelMaskOp : Structured<"label_mask", [NotDifferentiable, Decomposable]> {
  let summary = "Where the class of a label is";
  let description = [{
    `result[..., c] = labels[...] == c && labels[...] != ignore_index`: one true element in each row of classes, none
    where the label is ignored. Losses select by it, so that a label out of range is checked like that of cross_entropy.

        %0 = nn.label_mask %labels {ignore_index = -100 : i64} : (tensor<8xi64>) -> tensor<8x10xi1>

    label_mask-c1: the result has the shape of the labels and one dimension more, the classes.
  }];
  let arguments = (ins NN_IntegerTensor:$labels, OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs NN_BoolTensor:$result);
  let hasVerifier = 1;
}
