// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def SegmentBroadcastOp
    : Structured<"segment_broadcast", [NotDifferentiable, Interpreted, InfersShape, Library]> {
  let summary = "A number for each part of a flat tensor";
  let description = [{
    `result[i] = values[s]` for i from `segments[s, 0]` to before `segments[s, 1]`, and 0 between
    segments. These ascend and do not overlap.

        %1 = nn.segment_broadcast %values, %segments {elements = 32 : i64}
            : (tensor<2xf32>, tensor<2x2xi64>) -> tensor<32xf32>

    segment_broadcast-c1: there is one value for each pair of i64 in segments.
    segment_broadcast-c2: elements is positive.
  }];
  let arguments = (ins NN_FloatTensor:$values, NN_OffsetTensor:$segments, I64Attr:$elements);
  let results = (outs NN_FloatTensor:$result);
}
