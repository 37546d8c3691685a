// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// broadcast-c1
func.func @broadcast_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{expects 1 increasing dimensions below 2, found [2]}}
  %0 = nn.broadcast %x {dimensions = array<i64: 2>} : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// broadcast-c1
func.func @decreasing(%x: tensor<3x3xf32>) {
  // expected-error@+1 {{expects 2 increasing dimensions below 2}}
  %0 = nn.broadcast %x {dimensions = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

// broadcast-c2
func.func @broadcast_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{size 4 of dimension 0 is neither 1 nor 3}}
  %0 = nn.broadcast %x {dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

// broadcast-c3
func.func @broadcast_c3(%x: tensor<3xf32>) {
  // expected-error@+1 {{changes the element type}}
  %0 = nn.broadcast %x {dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %arg0 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[BROADCAST]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %arg1 {dimensions = array<i64: 0>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[REDUCE_SUM2]]
// Repeated along a new dimension: summed over it.
func.func @model(%x: tensor<3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.broadcast %x {dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %arg0 {dimensions = array<i64: 1, 2>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[BROADCAST]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1, 2>}
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %arg1 {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[RESHAPE:.*]] = nn.reshape %[[REDUCE_SUM2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[RESHAPE]]
// Size 1 repeated as well: its sum keeps the size.
func.func @model(%x: tensor<1x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<5x4x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.broadcast %x {dimensions = array<i64: 1, 2>} : (tensor<1x3xf32>) -> tensor<5x4x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<5x4x3xf32>, tensor<5x4x3xf32>) -> tensor<5x4x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<5x4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_trailing(%x: tensor<3xf64>) -> tensor<5x2x3xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>],
    check.results = [dense<[[[1.911, -0.822, -1.676], [1.911, -0.822, -1.676]], [[1.911, -0.822, -1.676], [1.911, -0.822, -1.676]], [[1.911, -0.822, -1.676], [1.911, -0.822, -1.676]], [[1.911, -0.822, -1.676], [1.911, -0.822, -1.676]], [[1.911, -0.822, -1.676], [1.911, -0.822, -1.676]]]> : tensor<5x2x3xf64>]} {
  %y = nn.broadcast %x {dimensions = array<i64: 2>} : (tensor<3xf64>) -> tensor<5x2x3xf64>
  return %y : tensor<5x2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_leading(%x: tensor<5xf64>) -> tensor<5x3xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676, 1.299, 1.409]> : tensor<5xf64>],
    check.results = [dense<[[1.911, 1.911, 1.911], [-0.822, -0.822, -0.822], [-1.676, -1.676, -1.676], [1.299, 1.299, 1.299], [1.409, 1.409, 1.409]]> : tensor<5x3xf64>]} {
  %y = nn.broadcast %x {dimensions = array<i64: 0>} : (tensor<5xf64>) -> tensor<5x3xf64>
  return %y : tensor<5x3xf64>
}

// -----

// NUMBERS
func.func @numbers_middle_size_one(%x: tensor<3x1x2xf64>) -> tensor<3x7x2x2xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822]], [[-1.676, 1.299]], [[1.409, -1.572]]]> : tensor<3x1x2xf64>],
    check.results = [dense<[[[[1.911, -0.822], [1.911, -0.822]], [[1.911, -0.822], [1.911, -0.822]], [[1.911, -0.822], [1.911, -0.822]], [[1.911, -0.822], [1.911, -0.822]], [[1.911, -0.822], [1.911, -0.822]], [[1.911, -0.822], [1.911, -0.822]], [[1.911, -0.822], [1.911, -0.822]]], [[[-1.676, 1.299], [-1.676, 1.299]], [[-1.676, 1.299], [-1.676, 1.299]], [[-1.676, 1.299], [-1.676, 1.299]], [[-1.676, 1.299], [-1.676, 1.299]], [[-1.676, 1.299], [-1.676, 1.299]], [[-1.676, 1.299], [-1.676, 1.299]], [[-1.676, 1.299], [-1.676, 1.299]]], [[[1.409, -1.572], [1.409, -1.572]], [[1.409, -1.572], [1.409, -1.572]], [[1.409, -1.572], [1.409, -1.572]], [[1.409, -1.572], [1.409, -1.572]], [[1.409, -1.572], [1.409, -1.572]], [[1.409, -1.572], [1.409, -1.572]], [[1.409, -1.572], [1.409, -1.572]]]]> : tensor<3x7x2x2xf64>]} {
  %y = nn.broadcast %x {dimensions = array<i64: 0, 1, 3>} : (tensor<3x1x2xf64>) -> tensor<3x7x2x2xf64>
  return %y : tensor<3x7x2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_scalar(%x: tensor<f64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<1.911> : tensor<f64>],
    check.results = [dense<[[1.911, 1.911, 1.911, 1.911, 1.911], [1.911, 1.911, 1.911, 1.911, 1.911], [1.911, 1.911, 1.911, 1.911, 1.911]]> : tensor<3x5xf64>]} {
  %y = nn.broadcast %x {dimensions = array<i64>} : (tensor<f64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_one_to_one(%x: tensor<1xf64>) -> tensor<1x1x1xf64> attributes {
    check.inputs = [dense<[1.911]> : tensor<1xf64>],
    check.results = [dense<[[[1.911]]]> : tensor<1x1x1xf64>]} {
  %y = nn.broadcast %x {dimensions = array<i64: 1>} : (tensor<1xf64>) -> tensor<1x1x1xf64>
  return %y : tensor<1x1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_bias(%x: tensor<3x5xf64>, %b: tensor<5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>,
                    dense<[1.227, -1.714, -0.763, 1.956, 0.327]> : tensor<5xf64>],
    check.results = [dense<[[2.3447970000000002, 1.4089079999999998, 1.278788, 2.540844, 0.460743], [-1.9288440000000002, 1.527174, -1.477931, 1.0758, -0.620646], [0.174234, -3.5771180000000005, 0.329616, -3.3349800000000003, 0.38095500000000004]]> : tensor<3x5xf64>]} {
  %wide = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<5xf64>) -> tensor<3x5xf64>
  %y = nn.mul %x, %wide : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
