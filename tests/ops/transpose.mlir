// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// transpose-c1
func.func @transpose_c1(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{expects a permutation of 2 dimensions}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[TRANSPOSE:.*]] = nn.transpose %arg0 {permutation = array<i64: 1, 2, 0>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[TRANSPOSE]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1, 2>}
// CHECK-NEXT: %[[TRANSPOSE2:.*]] = nn.transpose %arg1 {permutation = array<i64: 2, 0, 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[TRANSPOSE2]]
func.func @model(%x: tensor<2x3x4xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<3x4x2xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<3x4x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_cycle(%x: tensor<2x3x5xf64>) -> tensor<5x2x3xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]], [[1.721, -1.27, -1.033, 1.92, 0.944], [-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]> : tensor<2x3x5xf64>],
    check.results = [dense<[[[1.911, -1.572, 0.142], [1.721, -1.734, 1.008]], [[-0.822, -0.891, 2.087], [-1.27, -0.046, 1.998]], [[-1.676, 1.937, -0.432], [-1.033, 2.22, -0.935]], [[1.299, 0.55, -1.705], [1.92, -0.029, -1.147]], [[1.409, -1.898, 1.165], [0.944, -1.693, 1.863]]]> : tensor<5x2x3xf64>]} {
  %y = nn.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x5xf64>) -> tensor<5x2x3xf64>
  return %y : tensor<5x2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_heads(%x: tensor<1x3x2x5xf64>) -> tensor<1x2x3x5xf64> attributes {
    check.inputs = [dense<[[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898]], [[0.142, 2.087, -0.432, -1.705, 1.165], [1.721, -1.27, -1.033, 1.92, 0.944]], [[-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]]> : tensor<1x3x2x5xf64>],
    check.results = [dense<[[[[1.911, -0.822, -1.676, 1.299, 1.409], [0.142, 2.087, -0.432, -1.705, 1.165], [-1.734, -0.046, 2.22, -0.029, -1.693]], [[-1.572, -0.891, 1.937, 0.55, -1.898], [1.721, -1.27, -1.033, 1.92, 0.944], [1.008, 1.998, -0.935, -1.147, 1.863]]]]> : tensor<1x2x3x5xf64>]} {
  %y = nn.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x3x2x5xf64>) -> tensor<1x2x3x5xf64>
  return %y : tensor<1x2x3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[1.911]]> : tensor<1x1xf64>],
    check.results = [dense<[[1.911]]> : tensor<1x1xf64>]} {
  %y = nn.transpose %x {permutation = array<i64: 1, 0>} : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
