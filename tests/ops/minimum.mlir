// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%a: tensor<3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.minimum %a, %b : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error@+2 {{operands have one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.minimum %a, %b : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<5.000000e-01> : tensor<2x3xf32>
// CHECK-NEXT: %[[MINIMUM:.*]] = nn.minimum %arg0, %arg1
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[MINIMUM]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[GREATER:.*]] = nn.greater %arg0, %arg1
// CHECK-NEXT: %[[EQUAL:.*]] = nn.equal %arg0, %arg1
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[CONSTANT2]], %arg2
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[EQUAL]], %[[MUL2]], %arg2
// CHECK-NEXT: %[[SELECT2:.*]] = nn.select %[[GREATER]], %[[CONSTANT]], %[[SELECT]]
// CHECK-NEXT: %[[GREATER2:.*]] = nn.greater %arg1, %arg0
// CHECK-NEXT: %[[SELECT3:.*]] = nn.select %[[GREATER2]], %[[CONSTANT]], %[[SELECT]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SELECT2]], %[[SELECT3]]
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">}, %b: tensor<2x3xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.minimum %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<7xf64>, %b: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>, dense<[1.5, -0.75, 2.0, -1.25, 0.5, -3.0, 0.625]> : tensor<7xf64>],
    check.results = [dense<[-2.5, -1.25, -0.5, -1.25, 0.5, -3.0, 0.625]> : tensor<7xf64>]} {
  %y = nn.minimum %a, %b : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1x1xf64>, %b: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>, dense<[[0.5]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.5]]> : tensor<1x1xf64>]} {
  %y = nn.minimum %a, %b : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
// NaN wins from either side.
func.func @numbers_nan(%a: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[0x7FF8000000000000, 1.0, 2.0]> : tensor<3xf64>, dense<[1.0, 0x7FF8000000000000, 3.0]> : tensor<3xf64>],
    check.results = [dense<[0x7FF8000000000000, 0x7FF8000000000000, 2.0]> : tensor<3xf64>]} {
  %y = nn.minimum %a, %b : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_integers(%x: tensor<3xi64>) -> (tensor<3xi64>, tensor<3xi64>) attributes {
    check.inputs = [dense<[-3, 2, 9]> : tensor<3xi64>], check.results = [dense<[-3, 1, 1]> : tensor<3xi64>, dense<[-3, 1, 2]> : tensor<3xi64>]} {
  %bound = nn.constant dense<1> : tensor<3xi64>
  %places = nn.iota {dimension = 0 : i64} : () -> tensor<3xi64>
  %y = nn.minimum %x, %bound : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %z = nn.minimum %x, %places : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %y, %z : tensor<3xi64>, tensor<3xi64>
}
