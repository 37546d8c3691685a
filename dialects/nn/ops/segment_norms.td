// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def SegmentNormsOp
    : Structured<"segment_norms", [NotDifferentiable, Interpreted, InfersShape, Library]> {
  let summary = "Euclidean norms of parts of a flat tensor";
  let description = [{
    `result[s]` is the root of the sum of the squares of `x[i]` for i from `segments[s, 0]` to
    before `segments[s, 1]`, accumulated in f64 in an order that depends on the segment's size
    alone. What optimizers with a norm per parameter read the flat arenas with.

        %1 = nn.segment_norms %x, %segments : (tensor<32xf32>, tensor<2x2xi64>) -> tensor<2xf64>

    segment_norms-c1: x has one dimension, segments are pairs of i64.
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_OffsetTensor:$segments);
  let results = (outs NN_FloatTensor:$result);
}
