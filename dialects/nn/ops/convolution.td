// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

// The convolution's attributes, which its gradients have too.
defvar convolutionAttributes = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                                    DenseI64ArrayAttr:$pads, I64Attr:$groups);

class Convolution<string mnemonic>
    : Structured<mnemonic, [Differentiable, Interpreted, InfersShape, Library]> {
  let results = (outs NN_FloatTensor:$result);
}

def ConvolutionOp : Convolution<"convolution"> {
  let summary = "Convolution over one to three dimensions of space";
  let description = [{
    `result[n, o, p...] = sum over i, k... of x[n, i', p... * strides + k... * dilations - pads] * w[o, i, k...]`,
    where x is zero outside. Channels fall into `groups` equal parts: o and i' = group * (channels
    of w) + i are of one group. `pads` holds the zeros before each dimension, then those after it.
    The sums of bf16 elements are in f32, and so is the result; the same holds for the gradients.

        %y = nn.convolution %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
            pads = array<i64: 1, 1, 1, 1>, groups = 1 : i64}
            : (tensor<8x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<8x16x16x16xf32>

    convolution-c1: x and w have one rank of 3 to 5 and one element type.
    convolution-c2: strides and dilations have one positive number per dimension of space, pads
    two that are not negative.
    convolution-c3: groups divides both numbers of channels; w has those of one group.
    convolution-c4: the dilated kernel fits into the padded x and has an element.
  }];
  let arguments = !con((ins NN_FloatTensor:$x, NN_FloatTensor:$w), convolutionAttributes);
}

def ConvolutionInputGradientOp : Convolution<"convolution_input_gradient"> {
  let summary = "Gradient of a convolution's x; the transposed convolution";
  let description = [{
    The x of `sizes` in space whose convolution with w has dy's type, each element the sum of
    dy * w over the products that it was part of. Bilinear like the convolution, and each of the
    three is the gradient of the others.

    convolution-c5: a convolution of the result with w has the type of dy.

        %dx = nn.convolution_input_gradient %dy, %w {strides = array<i64: 2>, dilations = array<i64: 1>,
            pads = array<i64: 1, 1>, groups = 1 : i64, sizes = array<i64: 8>} : (tensor<2x3x4xf32>, tensor<3x2x3xf32>) -> tensor<2x2x8xf32>
  }];
  let arguments = !con((ins NN_FloatTensor:$dy, NN_FloatTensor:$w), convolutionAttributes,
                       (ins DenseI64ArrayAttr:$sizes));
}

def ConvolutionWeightGradientOp : Convolution<"convolution_weight_gradient"> {
  let summary = "Gradient of a convolution's w";
  let description = [{
    The w of `sizes` in space, each element the sum of dy * x over the products that it was part of.

    convolution-c6: a convolution of x with the result has the type of dy.

        %dw = nn.convolution_weight_gradient %x, %dy {strides = array<i64: 1>, dilations = array<i64: 1>,
            pads = array<i64: 0, 0>, groups = 1 : i64, sizes = array<i64: 3>} : (tensor<2x2x8xf32>, tensor<2x3x6xf32>) -> tensor<3x2x3xf32>
  }];
  let arguments = !con((ins NN_FloatTensor:$x, NN_FloatTensor:$dy), convolutionAttributes,
                       (ins DenseI64ArrayAttr:$sizes));
}
