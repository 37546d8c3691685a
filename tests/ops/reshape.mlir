// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// reshape-c1
func.func @reshape_c1(%x: tensor<6xf32>) {
  // expected-error@+1 {{element counts and types agree}}
  %0 = nn.reshape %x : (tensor<6xf32>) -> tensor<5xf32>
  return
}

// -----

// reshape-c1
func.func @types(%x: tensor<6xf32>) {
  // expected-error@+1 {{element counts and types agree}}
  %0 = nn.reshape %x : (tensor<6xf32>) -> tensor<6xi64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[RESHAPE:.*]] = nn.reshape %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[RESHAPE]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[RESHAPE2:.*]] = nn.reshape %arg1
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[RESHAPE2]]
func.func @model(%x: tensor<2x6xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<3x4xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.reshape %x : (tensor<2x6xf32>) -> tensor<3x4xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_split(%x: tensor<3x10xf64>) -> tensor<3x2x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165, 1.721, -1.27, -1.033, 1.92, 0.944], [-1.734, -0.046, 2.22, -0.029, -1.693, 1.008, 1.998, -0.935, -1.147, 1.863]]> : tensor<3x10xf64>],
    check.results = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898]], [[0.142, 2.087, -0.432, -1.705, 1.165], [1.721, -1.27, -1.033, 1.92, 0.944]], [[-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]> : tensor<3x2x5xf64>]} {
  %y = nn.reshape %x : (tensor<3x10xf64>) -> tensor<3x2x5xf64>
  return %y : tensor<3x2x5xf64>
}

// -----

// NUMBERS
func.func @numbers_scalar(%x: tensor<1x1xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[1.911]]> : tensor<1x1xf64>],
    check.results = [dense<1.911> : tensor<f64>]} {
  %y = nn.reshape %x : (tensor<1x1xf64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
func.func @numbers_between_transposes(%x: tensor<2x3x5xf64>) -> tensor<10x3xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]], [[1.721, -1.27, -1.033, 1.92, 0.944], [-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]> : tensor<2x3x5xf64>],
    check.results = [dense<[[1.911, -1.572, 0.142], [-0.822, -0.891, 2.087], [-1.676, 1.937, -0.432], [1.299, 0.55, -1.705], [1.409, -1.898, 1.165], [1.721, -1.734, 1.008], [-1.27, -0.046, 1.998], [-1.033, 2.22, -0.935], [1.92, -0.029, -1.147], [0.944, -1.693, 1.863]]> : tensor<10x3xf64>]} {
  %t = nn.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x5xf64>) -> tensor<3x2x5xf64>
  %r = nn.reshape %t : (tensor<3x2x5xf64>) -> tensor<3x10xf64>
  %y = nn.transpose %r {permutation = array<i64: 1, 0>} : (tensor<3x10xf64>) -> tensor<10x3xf64>
  return %y : tensor<10x3xf64>
}
