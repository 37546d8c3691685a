// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.acosh %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.acosh %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[ACOSH:.*]] = nn.acosh %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[ACOSH]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %arg0, %[[CONSTANT]]
// CHECK-NEXT: %[[SQRT:.*]] = nn.sqrt %[[SUB]]
// CHECK-NEXT: %[[ADD:.*]] = nn.add %arg0, %[[CONSTANT]]
// CHECK-NEXT: %[[SQRT2:.*]] = nn.sqrt %[[ADD]]
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[SQRT]], %[[SQRT2]]
// CHECK-NEXT: %[[DIV:.*]] = nn.div %arg1, %[[MUL2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[DIV]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.acosh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[1.25, 1.5, 2.5, 5.0, 10.0, 300.0, 3.0]> : tensor<7xf64>],
    check.results = [dense<[0.6931471805599453, 0.9624236501192069, 1.566799236972411, 2.2924316695611777, 2.993222846126381, 6.396926877426795, 1.762747174039086]> : tensor<7xf64>]} {
  %y = nn.acosh %x : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[3.0]]> : tensor<1x1xf64>],
    check.results = [dense<[[1.762747174039086]]> : tensor<1x1xf64>]} {
  %y = nn.acosh %x : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
