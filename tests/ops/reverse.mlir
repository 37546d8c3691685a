// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// reverse-c1
func.func @reverse_c1(%x: tensor<3xf32>) {
  // expected-error@+2 {{dimension 1 is repeated or out of range for rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.reverse %x {dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// reverse-c1
func.func @repeated(%x: tensor<3xf32>) {
  // expected-error@+2 {{dimension 0 is repeated or out of range for rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.reverse %x {dimensions = array<i64: 0, 0>} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[REVERSE:.*]] = nn.reverse %arg0 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[REVERSE]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[REVERSE2:.*]] = nn.reverse %arg1 {dimensions = array<i64: 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[REVERSE2]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.reverse %x {dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_both(%x: tensor<3x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[[1.165, -1.705, -0.432, 2.087, 0.142], [-1.898, 0.55, 1.937, -0.891, -1.572], [1.409, 1.299, -1.676, -0.822, 1.911]]> : tensor<3x5xf64>]} {
  %y = nn.reverse %x {dimensions = array<i64: 0, 1>} : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_middle(%x: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572]], [[-0.891, 1.937], [0.55, -1.898], [0.142, 2.087]]]> : tensor<2x3x2xf64>],
    check.results = [dense<[[[1.409, -1.572], [-1.676, 1.299], [1.911, -0.822]], [[0.142, 2.087], [0.55, -1.898], [-0.891, 1.937]]]> : tensor<2x3x2xf64>]} {
  %y = nn.reverse %x {dimensions = array<i64: 1>} : (tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %y : tensor<2x3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1xf64>) -> tensor<1xf64> attributes {
    check.inputs = [dense<[1.911]> : tensor<1xf64>],
    check.results = [dense<[1.911]> : tensor<1xf64>]} {
  %y = nn.reverse %x {dimensions = array<i64: 0>} : (tensor<1xf64>) -> tensor<1xf64>
  return %y : tensor<1xf64>
}
