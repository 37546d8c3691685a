// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// label_mask-c1
func.func @label_mask_c1(%labels: tensor<3xi64>) {
  // expected-error@+1 {{has the shape of the labels and one dimension of classes, found}}
  %0 = nn.label_mask %labels : (tensor<3xi64>) -> tensor<2x5xi1>
  return
}

// -----

// GRADIENT
// The mask passes no gradient on; what is selected by it gets its own.
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[MASK:.*]] = nn.label_mask %arg1 {ignore_index = 1 : i64}
// CHECK-NEXT: nn.select %[[MASK]], %arg0, %[[ZERO]]
// CHECK: %[[GRADIENT:.*]] = nn.select %[[MASK]], %arg2, %[[ZERO]]
// CHECK-NEXT: return %{{.*}}, %[[GRADIENT]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %labels: tensor<2xi64> {train.role = #train.label<"labels">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %zero = nn.constant dense<0.0> : tensor<2x3xf32>
  %mask = nn.label_mask %labels {ignore_index = 1 : i64} : (tensor<2xi64>) -> tensor<2x3xi1>
  %y = nn.select %mask, %x, %zero : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_every_label(%x: tensor<4x3xf64>, %labels: tensor<4xi64>) -> tensor<4xf64> attributes {
    check.inputs = [dense<[[1.5, 2.5, 3.5], [-1.5, -2.5, -3.5], [0.25, 0.5, 0.75], [4.0, 5.0, 6.0]]> : tensor<4x3xf64>, dense<[2, 0, 1, 2]> : tensor<4xi64>],
    check.results = [dense<[3.5, -1.5, 0.5, 6.0]> : tensor<4xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<4x3xf64>
  %mask = nn.label_mask %labels : (tensor<4xi64>) -> tensor<4x3xi1>
  %y = nn.select %mask, %x, %zero : (tensor<4x3xi1>, tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3xf64>
  %picked = nn.reduce_sum %y {dimensions = array<i64: 1>} : (tensor<4x3xf64>) -> tensor<4xf64>
  return %picked : tensor<4xf64>
}

// -----

// NUMBERS
// An ignored label may be that of a class, and several dimensions of labels, of 32 bits.
func.func @numbers_ignored(%x: tensor<2x1x3xf64>, %labels: tensor<2x1xi32>) -> tensor<2x1x3xf64> attributes {
    check.inputs = [dense<[[[1.5, 2.5, 3.5]], [[-1.5, -2.5, -3.5]]]> : tensor<2x1x3xf64>, dense<[[2], [1]]> : tensor<2x1xi32>],
    check.results = [dense<[[[0.0, 0.0, 0.0]], [[0.0, -2.5, 0.0]]]> : tensor<2x1x3xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<2x1x3xf64>
  %mask = nn.label_mask %labels {ignore_index = 2 : i64} : (tensor<2x1xi32>) -> tensor<2x1x3xi1>
  %y = nn.select %mask, %x, %zero : (tensor<2x1x3xi1>, tensor<2x1x3xf64>, tensor<2x1x3xf64>) -> tensor<2x1x3xf64>
  return %y : tensor<2x1x3xf64>
}
