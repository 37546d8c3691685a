// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// convolution-c1
func.func @convolution_c1(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>) {
  // expected-error@+2 {{x and w have one rank of 3 to 5 and one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c1
func.func @other_rank(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x3xf32>) {
  // expected-error@+2 {{x and w have one rank of 3 to 5 and one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c1
func.func @other_type(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x3x3xf64>) {
  // expected-error@+2 {{x and w have one rank of 3 to 5 and one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x3x3xf64>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c2
func.func @convolution_c2(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x3x3xf32>) {
  // expected-error@+2 {{strides and dilations have one positive number per dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 0>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c2
func.func @dilations(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x3x3xf32>) {
  // expected-error@+2 {{expected 2 dimensions}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c2
func.func @pads(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x3x3xf32>) {
  // expected-error@+2 {{pads two that are not negative}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, -1>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c2
func.func @huge(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x3x3xf32>) {
  // expected-error@+2 {{numbers up to 2147483647}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 9223372036854775807>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c3
func.func @convolution_c3(%x: tensor<2x4x4x4xf32>, %w: tensor<3x2x3x3xf32>) {
  // expected-error@+2 {{w has the channels of one of 2 groups of x}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 2 : i64} : (tensor<2x4x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c3
func.func @channels(%x: tensor<2x4x4x4xf32>, %w: tensor<3x3x3x3xf32>) {
  // expected-error@+2 {{w has the channels of one of 1 groups of x}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<2x4x4x4xf32>, tensor<3x3x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c3
func.func @no_groups(%x: tensor<2x4x4x4xf32>, %w: tensor<3x3x3x3xf32>) {
  // expected-error@+2 {{w has the channels of one of 0 groups of x}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 0 : i64} : (tensor<2x4x4x4xf32>, tensor<3x3x3x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c4
func.func @convolution_c4(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x2x3xf32>) {
  // expected-error@+2 {{fits into the padded x and has an element, found 6 in 5 along dimension 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 5, 1>, pads = array<i64: 1, 0, 0, 0>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x2x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c4
func.func @empty_kernel(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x2x0xf32>) {
  // expected-error@+2 {{has an element}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x3x2x0xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// convolution-c5
func.func @convolution_c5(%dy: tensor<1x3x2x2xf32>, %w: tensor<3x2x3x3xf32>) {
  // expected-error@+2 {{a convolution of the result with w has the type of dy}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution_input_gradient %dy, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64, sizes = array<i64: 4, 5>} : (tensor<1x3x2x2xf32>, tensor<3x2x3x3xf32>) -> tensor<1x2x4x5xf32>
  return
}

// -----

// convolution-c5
func.func @negative_size(%dy: tensor<1x3x2x2xf32>, %w: tensor<3x2x3x3xf32>) {
  // expected-error@+2 {{a convolution of the result with w has the type of dy}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution_input_gradient %dy, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64, sizes = array<i64: 4, -5>} : (tensor<1x3x2x2xf32>, tensor<3x2x3x3xf32>) -> tensor<1x2x4x5xf32>
  return
}

// -----

// convolution-c6
func.func @convolution_c6(%x: tensor<1x2x4x4xf32>, %dy: tensor<1x3x2x2xf32>) {
  // expected-error@+2 {{a convolution of x with the result has the type of dy}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution_weight_gradient %x, %dy {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64, sizes = array<i64: 3, 2>} : (tensor<1x2x4x4xf32>, tensor<1x3x2x2xf32>) -> tensor<3x2x3x2xf32>
  return
}

// -----

// convolution-c3
func.func @weight_groups(%x: tensor<1x3x4x4xf32>, %dy: tensor<1x4x2x2xf32>) {
  // expected-error@+2 {{w has the channels of one of 2 groups of x}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.convolution_weight_gradient %x, %dy {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 2 : i64, sizes = array<i64: 3, 3>} : (tensor<1x3x4x4xf32>, tensor<1x4x2x2xf32>) -> tensor<4x1x3x3xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[Y:.*]] = nn.convolution %arg0, %arg1
// CHECK-NEXT: nn.mul %[[Y]], %arg2
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum
// CHECK-NEXT: %[[DX:.*]] = nn.convolution_input_gradient %arg2, %arg1 {dilations = array<i64: 1, 1>, groups = 2 : i64, pads = array<i64: 1, 1, 1, 1>, sizes = array<i64: 7, 5>, strides = array<i64: 2, 1>}
// CHECK-NEXT: %[[DW:.*]] = nn.convolution_weight_gradient %arg0, %arg2 {dilations = array<i64: 1, 1>, groups = 2 : i64, pads = array<i64: 1, 1, 1, 1>, sizes = array<i64: 3, 3>, strides = array<i64: 2, 1>}
// CHECK-NEXT: return %[[LOSS]], %[[DX]], %[[DW]]
func.func @model(%x: tensor<2x4x7x5xf32> {train.role = #train.parameter<"x">},
                 %w: tensor<6x2x3x3xf32> {train.role = #train.parameter<"w">},
                 %weight: tensor<2x6x4x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.convolution %x, %w {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 2 : i64} : (tensor<2x4x7x5xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x6x4x5xf32>, tensor<2x6x4x5xf32>) -> tensor<2x6x4x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x6x4x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[DX:.*]] = nn.convolution_input_gradient %arg0, %arg1
// CHECK-NEXT: nn.mul %[[DX]], %arg2
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum
// CHECK-NEXT: %[[Y:.*]] = nn.convolution %arg2, %arg1
// CHECK-NEXT: %[[DW:.*]] = nn.convolution_weight_gradient %arg2, %arg0
// CHECK-NEXT: return %[[LOSS]], %[[Y]], %[[DW]]
func.func @model(%dy: tensor<2x6x4x5xf32> {train.role = #train.parameter<"dy">},
                 %w: tensor<6x2x3x3xf32> {train.role = #train.parameter<"w">},
                 %weight: tensor<2x4x7x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %x = nn.convolution_input_gradient %dy, %w {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 2 : i64, sizes = array<i64: 7, 5>} : (tensor<2x6x4x5xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x7x5xf32>
  %weighted = nn.mul %x, %weight : (tensor<2x4x7x5xf32>, tensor<2x4x7x5xf32>) -> tensor<2x4x7x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x7x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[DW:.*]] = nn.convolution_weight_gradient %arg0, %arg1
// CHECK-NEXT: nn.mul %[[DW]], %arg2
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum
// CHECK-NEXT: %[[DX:.*]] = nn.convolution_input_gradient %arg1, %arg2
// CHECK-NEXT: %[[Y:.*]] = nn.convolution %arg0, %arg2
// CHECK-NEXT: return %[[LOSS]], %[[DX]], %[[Y]]
func.func @model(%x: tensor<2x4x7x5xf32> {train.role = #train.parameter<"x">},
                 %dy: tensor<2x6x4x5xf32> {train.role = #train.parameter<"dy">},
                 %weight: tensor<6x2x3x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %w = nn.convolution_weight_gradient %x, %dy {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 2 : i64, sizes = array<i64: 3, 3>} : (tensor<2x4x7x5xf32>, tensor<2x6x4x5xf32>) -> tensor<6x2x3x3xf32>
  %weighted = nn.mul %w, %weight : (tensor<6x2x3x3xf32>, tensor<6x2x3x3xf32>) -> tensor<6x2x3x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<6x2x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_plain(%x: tensor<1x2x3x4xf64>, %w: tensor<3x2x2x2xf64>) -> tensor<1x3x2x3xf64> attributes {
    check.inputs = [dense<[[[[1.342, 1.355, 0.067, -0.942], [-1.963, -0.513, -0.403, -2.001], [-1.985, 2.196, 0.67, -1.168]], [[-0.286, 2.086, 1.75, 1.515], [-0.473, -0.031, 0.777, -1.932], [0.245, -1.006, 1.67, -1.917]]]]> : tensor<1x2x3x4xf64>,
                    dense<[[[[0.788, 1.628], [-1.2, 1.74]], [[1.638, -2.119], [0.913, -2.195]]], [[[0.015, -0.279], [-1.306, -0.77]], [[1.347, -0.808], [-1.544, 0.873]]], [[[-0.226, 1.315], [-1.164, -0.793]], [[1.319, 0.031], [0.028, -1.161]]]]> : tensor<3x2x2x2xf64>],
    check.results = [dense<[[[[-0.5260899999999994, -0.9340040000000006, 0.12743599999999944], [5.543802000000001, -8.811097, 4.687647]], [[1.2332919999999998, 3.103947, 0.5777169999999998], [-0.8534289999999999, -0.9375330000000002, -1.0677720000000002]], [[3.880453, 2.601305, 5.422036], [0.8881330000000001, -5.485301, 0.8434750000000002]]]]> : tensor<1x3x2x3xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<1x2x3x4xf64>, tensor<3x2x2x2xf64>) -> tensor<1x3x2x3xf64>
  return %y : tensor<1x3x2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_strides_and_asymmetric_pads(%x: tensor<2x1x5x4xf64>, %w: tensor<2x1x3x2xf64>) -> tensor<2x2x2x2xf64> attributes {
    check.inputs = [dense<[[[[-2.136, 1.906, -1.822, 1.518], [-0.581, 1.985, -0.443, 1.92], [0.247, -1.143, 1.062, 0.767], [0.811, -0.159, -1.224, 0.62], [-1.729, 0.846, 0.596, -0.543]]], [[[1.314, -1.346, -0.482, 1.311], [-0.526, 0.938, 0.495, 1.94], [2.163, 0.984, 1.359, -1.527], [0.937, 1.53, -0.435, 0.234], [-0.09, 2.018, -0.804, -0.431]]]]> : tensor<2x1x5x4xf64>,
                    dense<[[[[-2.196, -0.351], [0.578, 1.914], [1.864, -0.76]]], [[[2.151, -1.374], [1.422, -1.508], [-0.418, -1.877]]]]> : tensor<2x1x3x2xf64>],
    check.results = [dense<[[[[-0.17810799999999993, 4.456284], [0.1667490000000002, -2.6173140000000004]], [[-9.394627, 1.3560359999999998], [-1.942798, 4.961434]]], [[[-3.510096, 4.373918], [4.543216, -4.706670000000001]], [[2.3575180000000002, 1.0533219999999996], [-4.091800000000001, 1.9037339999999998]]]]> : tensor<2x2x2x2xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 2, 3>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 2>, groups = 1 : i64} : (tensor<2x1x5x4xf64>, tensor<2x1x3x2xf64>) -> tensor<2x2x2x2xf64>
  return %y : tensor<2x2x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_dilation(%x: tensor<1x1x5x7xf64>, %w: tensor<1x1x2x3xf64>) -> tensor<1x1x3x2xf64> attributes {
    check.inputs = [dense<[[[[1.575, 1.447, -1.585, 0.119, -1.064, -0.036, 0.234], [-1.732, 1.603, -0.974, -0.233, -1.948, -2.188, -1.341], [-0.697, 1.884, 1.715, -0.086, -0.199, 0.735, 1.579], [-0.716, 1.292, -0.444, 0.414, 1.045, 0.006, 0.839], [0.868, -2.175, -2.028, -1.544, -1.26, -1.306, -1.985]]]]> : tensor<1x1x5x7xf64>,
                    dense<[[[[-1.244, 0.444, 1.699], [-0.662, -0.588, -0.366]]]]> : tensor<1x1x2x3xf64>],
    check.results = [dense<[[[[-0.06657099999999994, -2.909328], [2.159869, -2.9892780000000005], [0.690382, -1.1331149999999997]]]]> : tensor<1x1x3x2xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 1, 2>, dilations = array<i64: 3, 2>, pads = array<i64: 0, 1, 1, 0>, groups = 1 : i64} : (tensor<1x1x5x7xf64>, tensor<1x1x2x3xf64>) -> tensor<1x1x3x2xf64>
  return %y : tensor<1x1x3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_groups(%x: tensor<1x4x3x3xf64>, %w: tensor<2x2x2x1xf64>) -> tensor<1x2x3x2xf64> attributes {
    check.inputs = [dense<[[[[0.794, 1.255, 1.94], [-0.547, 0.91, -0.697], [1.426, -1.185, 1.632]], [[0.022, 0.992, 0.154], [-0.809, -0.025, -1.978], [-2.011, 0.132, -0.1]], [[1.466, -2.111, 0.25], [-0.041, 0.431, 1.01], [0.109, 0.277, -0.036]], [[0.507, -1.108, 0.231], [0.759, -1.359, 2.158], [1.084, 2.003, -0.907]]]]> : tensor<1x4x3x3xf64>,
                    dense<[[[[-0.249], [-1.05]], [[-1.995], [-2.127]]], [[[-1.114], [1.59]], [[-1.48], [0.834]]]]> : tensor<2x2x2x1xf64>],
    check.results = [dense<[[[[-0.8804940000000001, -2.3645579999999997], [2.053497, 4.148765999999999], [4.530255, 2.618763]], [[2.753778, 0.5901540000000001], [-1.815668, 2.785292], [-0.000280000000000058, -5.132658]]]]> : tensor<1x2x3x2xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 1, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 0>, groups = 2 : i64} : (tensor<1x4x3x3xf64>, tensor<2x2x2x1xf64>) -> tensor<1x2x3x2xf64>
  return %y : tensor<1x2x3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_depthwise(%x: tensor<1x3x3x3xf64>, %w: tensor<6x1x2x2xf64>) -> tensor<1x6x2x3xf64> attributes {
    check.inputs = [dense<[[[[-1.103, -1.911, -1.353], [0.783, 0.007, 0.216], [-0.206, -0.993, -0.051]], [[1.859, -1.313, 1.024], [-1.095, -1.349, -0.775], [-1.792, 1.916, -0.593]], [[-1.426, -2.2, -1.934], [-1.256, -0.362, 0.447], [2.117, 1.718, -1.134]]]]> : tensor<1x3x3x3xf64>,
                    dense<[[[[0.491, 1.855], [-1.753, 1.558]]], [[[-0.457, 1.239], [-0.781, 0.553]]], [[[0.031, -1.741], [1.143, 1.421]]], [[[-0.075, -0.493], [1.969, -0.553]]], [[[1.67, -0.358], [-0.557, -0.61]]], [[[-1.936, -0.98], [-1.19, -1.926]]]]> : tensor<6x1x2x2xf64>],
    check.results = [dense<[[[[-0.8261509999999999, -5.448170999999999, -3.1238590000000004], [-0.38212999999999997, -1.943161, -0.582168]], [[-0.9336180000000001, -2.47131, -0.6890590000000001], [-0.255234, -1.1361850000000002, 0.390612]], [[-4.792514000000001, -0.8249520000000001, -4.4666690000000004], [3.1198720000000004, -3.391308, 1.091809]], [[-0.3109519999999999, -0.902174, -2.633963], [0.883456, -0.810188, 0.14864899999999998]], [[1.276668, -0.6734079999999997, -3.052664], [-0.757886, 2.9203460000000003, 3.2750319999999995]], [[3.8165359999999997, 7.108588000000001, 5.724378], [-2.07466, -5.782152, -2.214728]]]]> : tensor<1x6x2x3xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 1, 1, 0>, groups = 3 : i64} : (tensor<1x3x3x3xf64>, tensor<6x1x2x2xf64>) -> tensor<1x6x2x3xf64>
  return %y : tensor<1x6x2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_one_dimension(%x: tensor<2x2x7xf64>, %w: tensor<3x2x3xf64>) -> tensor<2x3x3xf64> attributes {
    check.inputs = [dense<[[[0.183, -0.254, -2.09, -1.514, 1.842, -1.612, -0.557], [1.983, -1.701, -0.397, 1.325, -2.116, -1.902, 1.892]], [[0.811, -1.051, -0.087, -1.105, 1.727, 1.979, -1.887], [0.106, -1.39, -0.421, 1.061, 0.939, -1.365, -0.738]]]> : tensor<2x2x7xf64>,
                    dense<[[[-0.329, -0.5, 0.801], [1.269, -0.724, -0.259]], [[-1.904, -0.586, 1.967], [0.01, 0.252, 0.467]], [[0.296, 1.34, -1.058], [-0.807, 1.702, -0.0]]]> : tensor<3x2x3xf64>],
    check.results = [dense<[[[-0.197365, -3.0758970000000003, 4.362579], [-2.6390710000000004, -2.371328, 3.361234], [-1.63365, 3.2294090000000004, -6.914702999999999]], [[0.37195599999999995, 0.30491900000000044, 1.7087139999999996], [-1.4124420000000002, 6.157344, 0.6108559999999998], [-2.60503, -0.9580260000000005, -0.8546769999999999]]]> : tensor<2x3x3xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 2>, dilations = array<i64: 2>, pads = array<i64: 1, 2>, groups = 1 : i64} : (tensor<2x2x7xf64>, tensor<3x2x3xf64>) -> tensor<2x3x3xf64>
  return %y : tensor<2x3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_three_dimensions(%x: tensor<1x1x2x3x3xf64>, %w: tensor<2x1x2x1x2xf64>) -> tensor<1x2x2x2x2xf64> attributes {
    check.inputs = [dense<[[[[[2.023, -1.589, 1.246], [-0.119, -0.115, 1.677], [-1.625, 0.064, -1.102]], [[-0.692, 1.396, -0.448], [1.251, -2.141, 2.197], [2.003, 0.785, -1.334]]]]]> : tensor<1x1x2x3x3xf64>,
                    dense<[[[[[0.69, -1.363]], [[-0.557, -2.046]]]], [[[[-1.891, -1.506]], [[-1.4, 1.489]]]]]> : tensor<2x1x2x1x2xf64>],
    check.results = [dense<[[[[[-0.6904089999999994, 0.9996239999999998], [-1.693342, 1.994469]], [[-1.9027479999999999, 0.13314400000000015], [-1.069955, 3.2003120000000003]]], [[[4.471678000000001, -5.400241], [1.072481, -0.058039000000000174]], [[-2.102376, 1.98326], [-1.18221, -1.7786690000000003]]]]]> : tensor<1x2x2x2x2xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 1, 2, 1>, dilations = array<i64: 1, 1, 2>, pads = array<i64: 0, 0, 1, 1, 0, 0>, groups = 1 : i64} : (tensor<1x1x2x3x3xf64>, tensor<2x1x2x1x2xf64>) -> tensor<1x2x2x2x2xf64>
  return %y : tensor<1x2x2x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1x1x1xf64>, %w: tensor<1x1x1x1xf64>) -> tensor<1x1x1x1xf64> attributes {
    check.inputs = [dense<[[[[-1.126]]]]> : tensor<1x1x1x1xf64>,
                    dense<[[[[1.432]]]]> : tensor<1x1x1x1xf64>],
    check.results = [dense<[[[[-1.6124319999999999]]]]> : tensor<1x1x1x1xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<1x1x1x1xf64>, tensor<1x1x1x1xf64>) -> tensor<1x1x1x1xf64>
  return %y : tensor<1x1x1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_unread_elements(%x: tensor<1x1x2x6xf64>, %w: tensor<1x1x1x2xf64>) -> tensor<1x1x2x2xf64> attributes {
    check.inputs = [dense<[[[[-2.173, -1.945, -1.932, 1.899, 1.396, -2.131], [1.899, -1.203, -1.036, 0.371, -1.299, 2.09]]]]> : tensor<1x1x2x6xf64>,
                    dense<[[[[-0.588, 0.313]]]]> : tensor<1x1x1x2xf64>],
    check.results = [dense<[[[[0.6689389999999998, -0.679664], [-1.493151, -0.6247349999999999]]]]> : tensor<1x1x2x2xf64>]} {
  %y = nn.convolution %x, %w {strides = array<i64: 1, 3>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 1>, groups = 1 : i64} : (tensor<1x1x2x6xf64>, tensor<1x1x1x2xf64>) -> tensor<1x1x2x2xf64>
  return %y : tensor<1x1x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_input_gradient_strides_and_asymmetric_pads(%dy: tensor<2x2x2x2xf64>, %w: tensor<2x1x3x2xf64>) -> tensor<2x1x5x4xf64> attributes {
    check.inputs = [dense<[[[[0.067, -1.899], [0.387, -1.397]], [[-1.083, 1.76], [0.387, -1.127]]], [[[0.876, 2.185], [1.749, 1.315]], [[-0.737, 0.366], [0.374, -1.811]]]]> : tensor<2x2x2x2xf64>,
                    dense<[[[[0.319, -0.961], [1.032, 2.166], [0.421, -1.831]]], [[[1.355, 0.734], [-0.045, 0.679], [-1.05, -0.863]]]]> : tensor<2x1x3x2xf64>],
    check.results = [dense<[[[[0.11787900000000001, -0.5902350000000001, 0.0, -2.038968], [1.8131950000000003, 0.7241029999999998, 0.0, -4.620207000000001], [0.381969, 1.101015, 0.0, -1.390989], [-0.24342300000000006, -1.042578, 0.0, 0.5952130000000001], [0.0, 0.0, 0.0, 0.0]]], [[[0.9371970000000001, 1.396993, 0.0, 2.2384500000000003], [2.207347, -2.374198, 0.0, -1.498835], [1.7881380000000002, 4.04228, 0.0, 1.4385750000000002], [0.343629, -3.5251810000000003, 0.0, 2.455165], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<2x1x5x4xf64>]} {
  %dx = nn.convolution_input_gradient %dy, %w {strides = array<i64: 2, 3>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 2>, groups = 1 : i64, sizes = array<i64: 5, 4>} : (tensor<2x2x2x2xf64>, tensor<2x1x3x2xf64>) -> tensor<2x1x5x4xf64>
  return %dx : tensor<2x1x5x4xf64>
}

// -----

// NUMBERS
func.func @numbers_input_gradient_groups(%dy: tensor<1x2x3x2xf64>, %w: tensor<2x2x2x1xf64>) -> tensor<1x4x3x3xf64> attributes {
    check.inputs = [dense<[[[[-1.077, -1.884], [-0.825, 0.266], [-2.028, -0.928]], [[-1.072, -1.522], [1.284, 2.034], [1.828, -0.26]]]]> : tensor<1x2x3x2xf64>,
                    dense<[[[[0.848], [0.093]], [[0.097], [1.044]]], [[[-1.859], [-1.265]], [[2.146], [-0.881]]]]> : tensor<2x2x2x1xf64>],
    check.results = [dense<[[[[-0.7997609999999999, 0.0, 0.05035600000000004], [-1.7964689999999999, 0.0, -0.7622059999999999], [-0.188604, 0.0, -0.086304]], [[-1.204413, 0.0, -1.9410939999999999], [-1.0580159999999998, 0.0, 0.187688], [-2.117232, 0.0, -0.9688320000000001]], [[-1.0308760000000001, 0.0, -1.8558759999999996], [-5.022512, 0.0, -2.0896699999999995], [-2.31242, 0.0, 0.32889999999999997]], [[3.699896, 0.0, 5.705845999999999], [2.791684, 0.0, -2.349914], [-1.610468, 0.0, 0.22906]]]]> : tensor<1x4x3x3xf64>]} {
  %dx = nn.convolution_input_gradient %dy, %w {strides = array<i64: 1, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 0>, groups = 2 : i64, sizes = array<i64: 3, 3>} : (tensor<1x2x3x2xf64>, tensor<2x2x2x1xf64>) -> tensor<1x4x3x3xf64>
  return %dx : tensor<1x4x3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_input_gradient_one_dimension(%dy: tensor<2x3x3xf64>, %w: tensor<3x2x3xf64>) -> tensor<2x2x7xf64> attributes {
    check.inputs = [dense<[[[-0.339, 0.224, 1.225], [0.25, 0.082, -1.147], [0.661, 0.362, 1.961]], [[-1.365, -1.651, -0.645], [-0.767, -0.207, -1.445], [0.91, 1.42, -2.172]]]> : tensor<2x3x3xf64>,
                    dense<[[[-1.908, -0.664, 0.108], [-0.527, 1.017, 1.07]], [[1.745, -0.136, -1.151], [1.809, 1.691, -1.642]], [[-1.27, 0.704, 1.411], [2.025, -2.107, -1.368]]]> : tensor<3x2x3xf64>],
    check.results = [dense<[[[0.0, -0.08760199999999996, 0.0, -6.126016, 0.0, 1.1637279999999999, 0.0], [0.0, -0.5514000000000003, 0.0, -0.8232150000000003, 0.0, -5.215759, 0.0]], [[0.0, 2.636805, 0.0, 5.611078, 0.0, 1.1592809999999998, 0.0], [0.0, -1.2314580000000008, 0.0, -13.13945, 0.0, -1.8922919999999985, 0.0]]]> : tensor<2x2x7xf64>]} {
  %dx = nn.convolution_input_gradient %dy, %w {strides = array<i64: 2>, dilations = array<i64: 2>, pads = array<i64: 1, 2>, groups = 1 : i64, sizes = array<i64: 7>} : (tensor<2x3x3xf64>, tensor<3x2x3xf64>) -> tensor<2x2x7xf64>
  return %dx : tensor<2x2x7xf64>
}

// -----

// NUMBERS
func.func @numbers_input_gradient_unread_elements(%dy: tensor<1x1x2x2xf64>, %w: tensor<1x1x1x2xf64>) -> tensor<1x1x2x6xf64> attributes {
    check.inputs = [dense<[[[[-0.852, -0.06], [-0.335, -1.252]]]]> : tensor<1x1x2x2xf64>,
                    dense<[[[[1.805, -1.801]]]]> : tensor<1x1x1x2xf64>],
    check.results = [dense<[[[[-1.53786, 1.534452, 0.0, -0.1083, 0.10805999999999999, 0.0], [-0.604675, 0.6033350000000001, 0.0, -2.2598599999999998, 2.254852, 0.0]]]]> : tensor<1x1x2x6xf64>]} {
  %dx = nn.convolution_input_gradient %dy, %w {strides = array<i64: 1, 3>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 1>, groups = 1 : i64, sizes = array<i64: 2, 6>} : (tensor<1x1x2x2xf64>, tensor<1x1x1x2xf64>) -> tensor<1x1x2x6xf64>
  return %dx : tensor<1x1x2x6xf64>
}

// -----

// NUMBERS
func.func @numbers_weight_gradient_dilation(%x: tensor<1x1x5x7xf64>, %dy: tensor<1x1x3x2xf64>) -> tensor<1x1x2x3xf64> attributes {
    check.inputs = [dense<[[[[1.009, 1.492, -1.199, -1.475, 0.084, -1.546, 1.934], [1.545, 1.473, -0.389, 1.262, -0.476, -0.185, -1.733], [-2.035, 0.75, -1.35, 2.008, 0.286, 0.336, 1.736], [-0.891, -2.153, -1.233, -0.186, -1.532, -0.965, 1.046], [-0.542, -0.697, -1.172, 0.139, 2.18, -1.456, 1.512]]]]> : tensor<1x1x5x7xf64>,
                    dense<[[[[1.209, 0.444], [0.189, 0.088], [-1.748, 0.303]]]]> : tensor<1x1x3x2xf64>],
    check.results = [dense<[[[[1.019322, 0.8358050000000002, -5.6556370000000005], [-1.017268, -2.8050620000000004, -0.7551910000000001]]]]> : tensor<1x1x2x3xf64>]} {
  %dw = nn.convolution_weight_gradient %x, %dy {strides = array<i64: 1, 2>, dilations = array<i64: 3, 2>, pads = array<i64: 0, 1, 1, 0>, groups = 1 : i64, sizes = array<i64: 2, 3>} : (tensor<1x1x5x7xf64>, tensor<1x1x3x2xf64>) -> tensor<1x1x2x3xf64>
  return %dw : tensor<1x1x2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_weight_gradient_depthwise(%x: tensor<1x3x3x3xf64>, %dy: tensor<1x6x2x3xf64>) -> tensor<6x1x2x2xf64> attributes {
    check.inputs = [dense<[[[[2.152, 1.008, -0.147], [-0.252, 1.627, -2.172], [-1.32, 2.013, 0.676]], [[1.442, 0.149, -2.019], [0.159, 0.571, -1.811], [-0.085, 1.948, -1.926]], [[-1.997, -1.746, 0.801], [1.729, -1.513, 1.517], [-1.223, 0.168, 1.161]]]]> : tensor<1x3x3x3xf64>,
                    dense<[[[[-1.682, -0.1, 1.613], [-0.638, 1.309, -0.201]], [[1.95, -0.438, 1.42], [-1.867, -0.709, -1.559]], [[-0.423, -0.417, -1.142], [-0.356, 0.799, 0.341]], [[-1.129, 0.93, 0.919], [-0.344, -0.179, -1.438]], [[1.473, -0.631, -0.911], [1.886, -0.856, -1.329]], [[-0.517, 0.069, 0.502], [-0.447, 0.81, -2.099]]]]> : tensor<1x6x2x3xf64>],
    check.results = [dense<[[[[-0.7217890000000002, -0.6162740000000002], [2.6495509999999998, -3.2422720000000003]]], [[[-1.713603, 3.5294950000000007], [2.420716, -4.288266]]], [[[-0.1751189999999998, 2.563545], [-0.7183849999999999, 1.7627979999999996]]], [[[-1.308018, -0.8947730000000003], [0.6726190000000001, -1.3127900000000001]]], [[[3.6743289999999997, -6.562921], [0.2873439999999998, 2.1195330000000006]]], [[[-2.3575470000000003, -0.4401010000000001], [-0.6402249999999999, -0.23675600000000008]]]]> : tensor<6x1x2x2xf64>]} {
  %dw = nn.convolution_weight_gradient %x, %dy {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 1, 1, 0>, groups = 3 : i64, sizes = array<i64: 2, 2>} : (tensor<1x3x3x3xf64>, tensor<1x6x2x3xf64>) -> tensor<6x1x2x2xf64>
  return %dw : tensor<6x1x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_weight_gradient_three_dimensions(%x: tensor<1x1x2x3x3xf64>, %dy: tensor<1x2x2x2x2xf64>) -> tensor<2x1x2x1x2xf64> attributes {
    check.inputs = [dense<[[[[[1.877, -0.171, -0.226], [-0.234, -0.987, 1.385], [-0.207, -1.779, -0.659]], [[-0.066, -0.618, -1.749], [1.711, -1.536, 1.008], [-0.333, -0.02, 0.779]]]]]> : tensor<1x1x2x3x3xf64>,
                    dense<[[[[[-2.125, -0.046], [-0.18, -0.313]], [[-2.195, -2.15], [-0.045, -0.195]]], [[[-0.727, -1.688], [-0.599, 0.761]], [[1.406, 1.163], [-2.193, -0.71]]]]]> : tensor<1x2x2x2x2xf64>],
    check.results = [dense<[[[[[0.185284, 5.866113]], [[0.107265, 1.153477]]]], [[[[-3.166231, -2.342298]], [[-0.142005, 4.006397]]]]]> : tensor<2x1x2x1x2xf64>]} {
  %dw = nn.convolution_weight_gradient %x, %dy {strides = array<i64: 1, 2, 1>, dilations = array<i64: 1, 1, 2>, pads = array<i64: 0, 0, 1, 1, 0, 0>, groups = 1 : i64, sizes = array<i64: 2, 1, 2>} : (tensor<1x1x2x3x3xf64>, tensor<1x2x2x2x2xf64>) -> tensor<2x1x2x1x2xf64>
  return %dw : tensor<2x1x2x1x2xf64>
}
