// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.detach %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.detach %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[DETACH:.*]] = nn.detach %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[DETACH]], %arg0
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[DETACH]]
// Only the factor that is not detached has a gradient: the other one's value.
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %fixed = nn.detach %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = nn.mul %fixed, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
// Of integers, by which differences would find a gradient as little.
func.func @numbers_odd(%i: tensor<7xi64>, %x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-3, -1, 0, 1, 2, 3, 5]> : tensor<7xi64>, dense<[-2.75, -1.25, -0.625, 0.25, 0.875, 1.375, 3.125]> : tensor<7xf64>],
    check.results = [dense<[8.25, 1.25, 0.0, 0.25, 1.75, 4.125, 15.625]> : tensor<7xf64>]} {
  %whole = nn.cast %i : (tensor<7xi64>) -> tensor<7xf64>
  %fixed = nn.detach %whole : (tensor<7xf64>) -> tensor<7xf64>
  %y = nn.mul %fixed, %x : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%i: tensor<1x1xi64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[-2]]> : tensor<1x1xi64>],
    check.results = [dense<[[-2.0]]> : tensor<1x1xf64>]} {
  %whole = nn.cast %i : (tensor<1x1xi64>) -> tensor<1x1xf64>
  %y = nn.detach %whole : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
