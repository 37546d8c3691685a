// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.round %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.round %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[ROUND:.*]] = nn.round %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[ROUND]], %arg0
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[ROUND]]
// The gradient of the rounded factor is zero everywhere: only the other factor has one.
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %whole = nn.round %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = nn.mul %whole, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.75, -1.25, -0.625, 0.25, 0.875, 1.375, 3.125]> : tensor<7xf64>],
    check.results = [dense<[8.25, 1.25, 0.625, 0.0, 0.875, 1.375, 9.375]> : tensor<7xf64>]} {
  %whole = nn.round %x : (tensor<7xf64>) -> tensor<7xf64>
  %y = nn.mul %whole, %x : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[-2.75]]> : tensor<1x1xf64>],
    check.results = [dense<[[8.25]]> : tensor<1x1xf64>]} {
  %whole = nn.round %x : (tensor<1x1xf64>) -> tensor<1x1xf64>
  %y = nn.mul %whole, %x : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
