// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

// The windows, which the gradients have too.
defvar poolAttributes = (ins DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                             DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);

class Pool<string mnemonic>
    : Structured<mnemonic, [Differentiable, Interpreted, InfersShape, Library]>;

def MaxPoolOp : Pool<"max_pool"> {
  let summary = "Of each window the value that stands where x is largest";
  let description = [{
    A window at point p of the result has the elements at `p * strides + k * dilations - pads` of
    each plane of space, k in `kernel`, that lie inside; `pads` counts those before each dimension,
    then those behind. Of equal elements the first is largest, in row-major order; as in PyTorch, of
    several that are not numbers the last is taken, before any number. `values` is x itself in
    the pool that models have; where it holds positions, the result says where the largest are.

        %y = nn.max_pool %x, %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>,
            dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>}
            : (tensor<8x64x32x32xf32>, tensor<8x64x32x32xf32>) -> tensor<8x64x16x16xf32>

    pool-c1: the rank is 3 to 5; the kernel has one positive number per dimension of space.
    pool-c2: strides and dilations have one positive number per dimension of space, pads two that are
    not negative.
    pool-c3: the dilated kernel fits into the padded input.
    pool-c4: every window of a largest element has an element.
    pool-c5: x and values have one shape; values are of x's type or i64.
  }];
  let arguments = !con((ins NN_FloatTensor:$x, NN_Tensor:$values), poolAttributes);
  let results = (outs NN_Tensor:$result);
}

def MaxPoolGradientOp : Pool<"max_pool_gradient"> {
  let summary = "Gradient of max_pool's values";
  let description = [{
    Each element of dy added where its window of x is largest; zero elsewhere.

    pool-c6: dy has the type of the pool of x.

        %dx = nn.max_pool_gradient %x, %dy {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>,
            dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>}
            : (tensor<2x3x4x4xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x4x4xf32>
  }];
  let arguments = !con((ins NN_FloatTensor:$x, NN_FloatTensor:$dy), poolAttributes);
  let results = (outs NN_FloatTensor:$result);
}

def SumPoolOp : Pool<"sum_pool"> {
  let summary = "Sum of each window";
  let description = [{
    Windows as of max_pool; what lies outside x is zero. Linear, and its gradient's gradient.

        %y = nn.sum_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, dilations = array<i64: 1>,
            pads = array<i64: 0, 0>} : (tensor<8x64x32xf32>) -> tensor<8x64x16xf32>
  }];
  let arguments = !con((ins NN_FloatTensor:$x), poolAttributes);
  let results = (outs NN_FloatTensor:$result);
}

def SumPoolGradientOp : Pool<"sum_pool_gradient"> {
  let summary = "Gradient of sum_pool";
  let description = [{
    The x of `sizes` in space, each element the sum of dy over the windows that it was part of.

    pool-c7: the pool of the result has the type of dy.

        %dx = nn.sum_pool_gradient %dy {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>,
            dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, sizes = array<i64: 4, 4>}
            : (tensor<2x3x2x2xf32>) -> tensor<2x3x4x4xf32>
  }];
  let arguments = !con((ins NN_FloatTensor:$dy), poolAttributes, (ins DenseI64ArrayAttr:$sizes));
  let results = (outs NN_FloatTensor:$result);
}
