// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def ResampleOp : Structured<"resample", [Differentiable, Decomposable, InfersShape]> {
  let summary = "Each element along a dimension a weighted sum of some of the operand's";
  let description = [{
    `result[..., i, ...] = sum over k of weights[i * taps + k] * x[..., indices[i * taps + k], ...]`: interpolation along
    one dimension, of any kind. The gradient is another resampling.

        %0 = nn.resample %x {dimension = 1 : i64, taps = 2 : i64, indices = array<i64: 0, 0, 0, 1, 1, 1>,
                             weights = array<f64: 0.5, 0.5, 0.5, 0.5, 0.5, 0.5>} : (tensor<4x2xf32>) -> tensor<4x3xf32>

    resample-c1: dimension is within the rank.
    resample-c2: there are as many weights as indices, taps for each element of the result.
    resample-c3: indices are within the operand.
  }];
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$dimension, I64Attr:$taps, DenseI64ArrayAttr:$indices,
                       DenseF64ArrayAttr:$weights);
  let results = (outs NN_FloatTensor:$result);
}
