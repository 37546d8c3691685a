// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pad-c1
func.func @pad_c1(%x: tensor<3xf32>) {
  // expected-error@+2 {{one nonnegative entry per dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.pad %x {low = array<i64: 1, 1>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pad-c1
func.func @negative(%x: tensor<3xf32>) {
  // expected-error@+2 {{one nonnegative entry per dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.pad %x {low = array<i64: -1>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[PAD:.*]] = nn.pad %arg0 {high = array<i64: 0, 2>, interior = array<i64: 0, 1>, low = array<i64: 1, 0>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[PAD]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SLICE:.*]] = nn.slice %arg1 {sizes = array<i64: 2, 3>, starts = array<i64: 1, 0>, strides = array<i64: 1, 2>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SLICE]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<3x7xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.pad %x {low = array<i64: 1, 0>, high = array<i64: 0, 2>, interior = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<3x7xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x7xf32>, tensor<3x7xf32>) -> tensor<3x7xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x7xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_edges(%x: tensor<2x3xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572]]> : tensor<2x3xf64>],
    check.results = [dense<[[0.0, 0.0, 0.0, 0.0, 0.0], [1.911, -0.822, -1.676, 0.0, 0.0], [1.299, 1.409, -1.572, 0.0, 0.0]]> : tensor<3x5xf64>]} {
  %y = nn.pad %x {low = array<i64: 1, 0>, high = array<i64: 0, 2>, interior = array<i64: 0, 0>} : (tensor<2x3xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_interior(%x: tensor<3x2xf64>) -> tensor<8x4xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572]]> : tensor<3x2xf64>],
    check.results = [dense<[[0.0, 1.911, 0.0, -0.822], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, -1.676, 0.0, 1.299], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.409, 0.0, -1.572], [0.0, 0.0, 0.0, 0.0]]> : tensor<8x4xf64>]} {
  %y = nn.pad %x {low = array<i64: 0, 1>, high = array<i64: 1, 0>, interior = array<i64: 2, 1>} : (tensor<3x2xf64>) -> tensor<8x4xf64>
  return %y : tensor<8x4xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1xf64>) -> tensor<4xf64> attributes {
    check.inputs = [dense<[1.911]> : tensor<1xf64>],
    check.results = [dense<[0.0, 0.0, 1.911, 0.0]> : tensor<4xf64>]} {
  %y = nn.pad %x {low = array<i64: 2>, high = array<i64: 1>, interior = array<i64: 3>} : (tensor<1xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}
