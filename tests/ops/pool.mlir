// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pool-c1
func.func @pool_c1(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{the rank is 3 to 5 and the kernel has one positive number}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool %x, %x {kernel = array<i64>, strides = array<i64>, dilations = array<i64>, pads = array<i64>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c1
func.func @kernel_rank(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{found a kernel of 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.sum_pool %x {kernel = array<i64: 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c1
func.func @empty_kernel(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{one positive number per dimension of space}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.sum_pool %x {kernel = array<i64: 2, 0>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c2
func.func @pool_c2(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{strides and dilations have one positive number per dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool %x, %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 0>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c2
func.func @negative_pad(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{pads two that are not negative}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.sum_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, -1, 0, 0>} : (tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c2
func.func @huge(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{numbers up to 2147483647}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.sum_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 4611686018427387904, 0, 0>} : (tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c3
func.func @pool_c3(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{fits into the padded input, found 6 in 5 along dimension 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.sum_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 5, 1>, pads = array<i64: 1, 0, 0, 0>} : (tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c4
func.func @pool_c4(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{found one with pads alone along dimension 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool %x, %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 2, 0, 0>} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c4
func.func @behind(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{found one with pads alone along dimension 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool %x, %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 2, 0>} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c4
func.func @between(%x: tensor<2x3x4x5xf32>) {
  // expected-error@+2 {{found one with pads alone along dimension 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool %x, %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 9>, pads = array<i64: 0, 2, 0, 8>} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c5
func.func @pool_c5(%x: tensor<2x3x4x5xf32>, %v: tensor<2x3x4x4xf32>) {
  // expected-error@+2 {{x and values have one shape}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool %x, %v {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4x5xf32>, tensor<2x3x4x4xf32>) -> tensor<1x1x1x1xf32>
  return
}

// -----

// pool-c5
func.func @values_type(%x: tensor<2x3x4x5xf32>, %v: tensor<2x3x4x5xi32>) {
  // expected-error@+2 {{values are of x's type or i64}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool %x, %v {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xi32>) -> tensor<1x1x1x1xi32>
  return
}

// -----

// pool-c6
func.func @pool_c6(%x: tensor<2x3x4x5xf32>, %dy: tensor<2x3x3x3xf32>) {
  // expected-error@+2 {{dy has the type of the pool of x}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.max_pool_gradient %x, %dy {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4x5xf32>, tensor<2x3x3x3xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

// pool-c7
func.func @pool_c7(%dy: tensor<2x3x3x3xf32>) {
  // expected-error@+2 {{the pool of the result has the type of dy}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.sum_pool_gradient %dy {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, sizes = array<i64: 4, 5>} : (tensor<2x3x3x3xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

// pool-c7
func.func @negative_size(%dy: tensor<2x3x3x3xf32>) {
  // expected-error@+2 {{the pool of the result has the type of dy}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.sum_pool_gradient %dy {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, sizes = array<i64: 4, -5>} : (tensor<2x3x3x3xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[Y:.*]] = nn.max_pool %arg0, %arg0 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, pads = array<i64: 1, 0, 1, 1>, strides = array<i64: 2, 1>}
// CHECK-NEXT: nn.mul %[[Y]], %arg1
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum
// CHECK-NEXT: %[[DX:.*]] = nn.max_pool_gradient %arg0, %arg1 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, pads = array<i64: 1, 0, 1, 1>, strides = array<i64: 2, 1>}
// CHECK-NEXT: return %[[LOSS]], %[[DX]]
func.func @model(%x: tensor<2x3x7x5xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3x4x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.max_pool %x, %x {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 1>} : (tensor<2x3x7x5xf32>, tensor<2x3x7x5xf32>) -> tensor<2x3x4x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x3x4x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[DX:.*]] = nn.max_pool_gradient %arg0, %arg1
// CHECK-NEXT: nn.mul %[[DX]], %arg2
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum
// CHECK-NEXT: %[[DY:.*]] = nn.max_pool %arg0, %arg2 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, pads = array<i64: 1, 0, 1, 1>, strides = array<i64: 2, 1>}
// CHECK-NEXT: return %[[LOSS]], %[[DY]]
func.func @model(%x: tensor<2x3x7x5xf32> {train.role = #train.input<"x">}, %dy: tensor<2x3x4x5xf32> {train.role = #train.parameter<"dy">},
                 %weight: tensor<2x3x7x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.max_pool_gradient %x, %dy {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 1>} : (tensor<2x3x7x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x7x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3x7x5xf32>, tensor<2x3x7x5xf32>) -> tensor<2x3x7x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x3x7x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[Y:.*]] = nn.sum_pool %arg0 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, pads = array<i64: 1, 0, 1, 1>, strides = array<i64: 2, 1>}
// CHECK-NEXT: nn.mul %[[Y]], %arg1
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum
// CHECK-NEXT: %[[DX:.*]] = nn.sum_pool_gradient %arg1 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, pads = array<i64: 1, 0, 1, 1>, sizes = array<i64: 7, 5>, strides = array<i64: 2, 1>}
// CHECK-NEXT: return %[[LOSS]], %[[DX]]
func.func @model(%x: tensor<2x3x7x5xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3x4x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.sum_pool %x {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 1>} : (tensor<2x3x7x5xf32>) -> tensor<2x3x4x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x3x4x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[DX:.*]] = nn.sum_pool_gradient %arg0
// CHECK-NEXT: nn.mul %[[DX]], %arg1
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum
// CHECK-NEXT: %[[DY:.*]] = nn.sum_pool %arg1 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, pads = array<i64: 1, 0, 1, 1>, strides = array<i64: 2, 1>}
// CHECK-NEXT: return %[[LOSS]], %[[DY]]
func.func @model(%dy: tensor<2x3x4x5xf32> {train.role = #train.parameter<"dy">},
                 %weight: tensor<2x3x7x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.sum_pool_gradient %dy {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 1>, sizes = array<i64: 7, 5>} : (tensor<2x3x4x5xf32>) -> tensor<2x3x7x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3x7x5xf32>, tensor<2x3x7x5xf32>) -> tensor<2x3x7x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x3x7x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_largest(%x: tensor<1x2x3x4xf64>) -> tensor<1x2x2x3xf64> attributes {
    check.inputs = [dense<[[[[0.730, 0.360, 1.470, 4.430], [-4.080, 2.210, -2.970, 4.060], [-1.120, -0.750, 2.580, -1.860]], [[-3.710, -0.380, -3.340, -0.010], [3.320, 1.840, 1.100, -2.600], [-1.490, -2.230, 3.690, 2.950]]]]> : tensor<1x2x3x4xf64>],
    check.results = [dense<[[[[2.210, 2.210, 4.430], [2.210, 2.580, 4.060]], [[3.320, 1.840, 1.100], [3.320, 3.690, 3.690]]]]> : tensor<1x2x2x3xf64>]} {
  %y = nn.max_pool %x, %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x2x3x4xf64>, tensor<1x2x3x4xf64>) -> tensor<1x2x2x3xf64>
  return %y : tensor<1x2x2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_largest_padded(%x: tensor<2x1x5x4xf64>) -> tensor<2x1x3x2xf64> attributes {
    check.inputs = [dense<[[[[1.340, -6.800, -5.690, 5.780], [7.260, -6.060, -0.510, -0.880], [4.300, 7.630, 2.820, 3.560], [4.670, 1.710, -4.580, -5.320], [-2.730, 6.890, 6.150, 6.520]]], [[[-4.210, -0.140, -4.950, 3.930], [-2.360, 2.450, 0.230, -6.430], [3.190, -1.990, -3.840, 0.970], [0.600, 2.080, -1.250, 5.040], [-3.470, -1.620, -3.100, 5.410]]]]> : tensor<2x1x5x4xf64>],
    check.results = [dense<[[[[7.260, 5.780], [7.630, 7.630], [6.890, 6.890]]], [[[2.450, 3.930], [3.190, 5.040], [2.080, 5.410]]]]> : tensor<2x1x3x2xf64>]} {
  %y = nn.max_pool %x, %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>} : (tensor<2x1x5x4xf64>, tensor<2x1x5x4xf64>) -> tensor<2x1x3x2xf64>
  return %y : tensor<2x1x3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_largest_dilated(%x: tensor<1x1x5x6xf64>) -> tensor<1x1x3x3xf64> attributes {
    check.inputs = [dense<[[[[-1.770, -3.250, 2.300, 3.410, 1.560, 4.890], [-5.100, -2.140, 3.040, -0.290, 1.930, -4.730], [0.820, -1.400, -4.360, 5.260, 0.080, 2.670], [5.630, -2.880, -3.620, 0.450, -2.510, -3.990], [1.190, 3.780, -0.660, -1.030, 4.520, 4.150]]]]> : tensor<1x1x5x6xf64>],
    check.results = [dense<[[[[0.820, 0.820, 0.080], [5.630, 5.630, 2.300], [3.040, 4.520, 4.520]]]]> : tensor<1x1x3x3xf64>]} {
  %y = nn.max_pool %x, %x {kernel = array<i64: 2, 3>, strides = array<i64: 1, 2>, dilations = array<i64: 3, 2>, pads = array<i64: 1, 2, 0, 1>} : (tensor<1x1x5x6xf64>, tensor<1x1x5x6xf64>) -> tensor<1x1x3x3xf64>
  return %y : tensor<1x1x3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_largest_line(%x: tensor<1x2x7xf64>) -> tensor<1x2x4xf64> attributes {
    check.inputs = [dense<[[[-0.160, 0.210, -2.010, -2.380, 0.950, 1.320, 0.580], [-1.640, 2.060, -0.900, 1.690, 2.430, -1.270, -0.530]]]> : tensor<1x2x7xf64>],
    check.results = [dense<[[[0.210, 0.210, 1.320, 1.320], [2.060, 2.060, 2.430, -0.530]]]> : tensor<1x2x4xf64>]} {
  %y = nn.max_pool %x, %x {kernel = array<i64: 3>, strides = array<i64: 2>, dilations = array<i64: 1>, pads = array<i64: 1, 2>} : (tensor<1x2x7xf64>, tensor<1x2x7xf64>) -> tensor<1x2x4xf64>
  return %y : tensor<1x2x4xf64>
}

// -----

// NUMBERS
func.func @numbers_largest_volume(%x: tensor<1x1x3x2x4xf64>) -> tensor<1x1x3x2x2xf64> attributes {
    check.inputs = [dense<[[[[[-0.380, -4.080, 2.580, -2.600], [-1.860, 1.470, 4.430, -0.010]], [[4.060, 2.950, -2.970, -3.710], [1.840, 0.360, 3.690, -1.490]], [[-0.750, 2.210, 1.100, -1.120], [0.730, -3.340, 3.320, -2.230]]]]]> : tensor<1x1x3x2x4xf64>],
    check.results = [dense<[[[[[-0.380, -2.600], [1.470, -0.010]], [[4.060, -2.600], [1.840, -0.010]], [[4.060, -1.120], [1.840, -1.490]]]]]> : tensor<1x1x3x2x2xf64>]} {
  %y = nn.max_pool %x, %x {kernel = array<i64: 2, 1, 2>, strides = array<i64: 1, 1, 3>, dilations = array<i64: 1, 1, 1>, pads = array<i64: 1, 0, 0, 0, 0, 1>} : (tensor<1x1x3x2x4xf64>, tensor<1x1x3x2x4xf64>) -> tensor<1x1x3x2x2xf64>
  return %y : tensor<1x1x3x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_largest_of_one(%x: tensor<1x1x1x1xf64>) -> tensor<1x1x1x1xf64> attributes {
    check.inputs = [dense<[[[[-0.170]]]]> : tensor<1x1x1x1xf64>],
    check.results = [dense<[[[[-0.170]]]]> : tensor<1x1x1x1xf64>]} {
  %y = nn.max_pool %x, %x {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x1x1x1xf64>, tensor<1x1x1x1xf64>) -> tensor<1x1x1x1xf64>
  return %y : tensor<1x1x1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_values(%v: tensor<1x2x6xf64>) -> tensor<1x2x2xf64> attributes {
    check.inputs = [dense<[[[-0.190, 0.180, 0.550, 2.030, -0.930, -1.300], [-2.040, -1.670, 0.920, 1.290, 1.660, -0.560]]]> : tensor<1x2x6xf64>],
    check.results = [dense<[[[-0.190, -0.930], [-2.040, 1.290]]]> : tensor<1x2x2xf64>]} {
  %x = nn.constant dense<[[[0.920, 0.180, -0.560, 0.550, 2.030, 1.660], [-0.190, -1.670, -1.300, 1.290, -2.040, -0.930]]]> : tensor<1x2x6xf64>
  %y = nn.max_pool %x, %v {kernel = array<i64: 3>, strides = array<i64: 3>, dilations = array<i64: 1>, pads = array<i64: 0, 0>} : (tensor<1x2x6xf64>, tensor<1x2x6xf64>) -> tensor<1x2x2xf64>
  return %y : tensor<1x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_positions(%x: tensor<1x1x4x4xf64>, %v: tensor<1x1x4x4xi64>) -> tensor<1x1x2x2xi64> attributes {
    check.inputs = [dense<[[[[-0.130, -1.980, 0.610, 0.240], [1.350, -2.720, 2.830, -0.500], [2.090, -0.870, -1.610, 2.460], [1.720, 0.980, -2.350, -1.240]]]]> : tensor<1x1x4x4xf64>, dense<[[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]]]> : tensor<1x1x4x4xi64>],
    check.results = [dense<[[[[4, 6], [8, 11]]]]> : tensor<1x1x2x2xi64>]} {
  %y = nn.max_pool %x, %v {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x1x4x4xf64>, tensor<1x1x4x4xi64>) -> tensor<1x1x2x2xi64>
  return %y : tensor<1x1x2x2xi64>
}

// -----

// NUMBERS
func.func @numbers_sum(%x: tensor<1x2x3x4xf64>) -> tensor<1x2x2x3xf64> attributes {
    check.inputs = [dense<[[[[2.950, -1.860, -1.490, -0.010], [-0.380, 4.060, 2.210, 1.840], [3.690, -4.080, -3.340, -0.750]], [[0.360, 1.100, 1.470, -3.710], [2.580, -2.970, -2.230, 4.430], [0.730, 3.320, -1.120, -2.600]]]]> : tensor<1x2x3x4xf64>],
    check.results = [dense<[[[[4.770, 2.920, 2.550], [3.290, -1.150, -0.040]], [[1.070, -2.630, -0.040], [3.660, -3.000, -1.520]]]]> : tensor<1x2x2x3xf64>]} {
  %y = nn.sum_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x2x3x4xf64>) -> tensor<1x2x2x3xf64>
  return %y : tensor<1x2x2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_sum_padded(%x: tensor<2x1x5x4xf64>) -> tensor<2x1x3x2xf64> attributes {
    check.inputs = [dense<[[[[3.190, -4.210, 0.230, -4.950], [-3.470, -0.880, 7.260, 1.340], [5.410, 5.040, -4.580, 2.080], [-0.510, 3.560, 2.820, 1.710], [7.630, -0.140, 0.600, 5.780]]], [[[-6.430, -2.730, -5.690, 0.970], [-1.990, 4.670, 6.520, 4.300], [-1.250, -1.620, -5.320, -2.360], [-3.100, -6.060, 3.930, 6.150], [-6.800, -3.840, 6.890, 2.450]]]]> : tensor<2x1x5x4xf64>],
    check.results = [dense<[[[[-5.370, -1.210], [9.150, 18.350], [10.540, 14.330]]], [[[-6.480, 8.040], [-9.350, 10.210], [-19.800, 9.520]]]]> : tensor<2x1x3x2xf64>]} {
  %y = nn.sum_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>} : (tensor<2x1x5x4xf64>) -> tensor<2x1x3x2xf64>
  return %y : tensor<2x1x3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_sum_dilated(%x: tensor<1x1x5x6xf64>) -> tensor<1x1x3x3xf64> attributes {
    check.inputs = [dense<[[[[5.630, 2.300, 3.040, -1.770, 5.260, -3.620], [-0.290, -1.400, 3.410, 1.190, -0.660, 0.080], [1.560, -4.730, -3.250, 0.820, -2.140, -2.880], [-2.510, 0.450, -1.030, 4.520, -5.100, 1.930], [4.150, 4.890, 2.670, -3.990, -4.360, 3.780]]]]> : tensor<1x1x5x6xf64>],
    check.results = [dense<[[[[-1.690, -3.830, -5.390], [5.130, 5.290, 2.170], [9.940, 4.920, 1.060]]]]> : tensor<1x1x3x3xf64>]} {
  %y = nn.sum_pool %x {kernel = array<i64: 2, 3>, strides = array<i64: 1, 2>, dilations = array<i64: 3, 2>, pads = array<i64: 1, 2, 0, 1>} : (tensor<1x1x5x6xf64>) -> tensor<1x1x3x3xf64>
  return %y : tensor<1x1x3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_sum_line(%x: tensor<1x2x7xf64>) -> tensor<1x2x5xf64> attributes {
    check.inputs = [dense<[[[-0.530, -2.380, 0.210, 0.950, 1.690, 2.060, -0.900], [-1.270, 0.580, 2.430, 1.320, -2.010, -0.160, -1.640]]]> : tensor<1x2x7xf64>],
    check.results = [dense<[[[-2.910, -1.220, 4.700, 1.160, 0.000], [-0.690, 4.330, -0.850, -1.800, 0.000]]]> : tensor<1x2x5xf64>]} {
  %y = nn.sum_pool %x {kernel = array<i64: 3>, strides = array<i64: 2>, dilations = array<i64: 1>, pads = array<i64: 1, 3>} : (tensor<1x2x7xf64>) -> tensor<1x2x5xf64>
  return %y : tensor<1x2x5xf64>
}

// -----

// NUMBERS
func.func @numbers_sum_volume(%x: tensor<1x1x3x2x4xf64>) -> tensor<1x1x3x2x2xf64> attributes {
    check.inputs = [dense<[[[[[1.840, -2.600, -1.120, -2.230], [4.430, -0.750, 0.360, -1.490]], [[1.100, -3.710, -1.860, 2.580], [-2.970, -3.340, -0.010, 4.060]], [[2.950, -0.380, 1.470, -4.080], [2.210, 3.320, 0.730, 3.690]]]]]> : tensor<1x1x3x2x4xf64>],
    check.results = [dense<[[[[[-0.760, -2.230], [3.680, -1.490]], [[-3.370, 0.350], [-2.630, 2.570]], [[-0.040, -1.500], [-0.780, 7.750]]]]]> : tensor<1x1x3x2x2xf64>]} {
  %y = nn.sum_pool %x {kernel = array<i64: 2, 1, 2>, strides = array<i64: 1, 1, 3>, dilations = array<i64: 1, 1, 1>, pads = array<i64: 1, 0, 0, 0, 0, 1>} : (tensor<1x1x3x2x4xf64>) -> tensor<1x1x3x2x2xf64>
  return %y : tensor<1x1x3x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_sum_of_pads(%x: tensor<1x1x2xf64>) -> tensor<1x1x4xf64> attributes {
    check.inputs = [dense<[[[-0.340, 0.030]]]> : tensor<1x1x2xf64>],
    check.results = [dense<[[[0.000, 0.000, -0.340, -0.310]]]> : tensor<1x1x4xf64>]} {
  %y = nn.sum_pool %x {kernel = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, pads = array<i64: 3, 0>} : (tensor<1x1x2xf64>) -> tensor<1x1x4xf64>
  return %y : tensor<1x1x4xf64>
}
