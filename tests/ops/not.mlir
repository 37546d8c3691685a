// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xi1>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.not %x : (tensor<3xi1>) -> tensor<4xi1>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xi1>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xi1>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.not %x : (tensor<3xi1>) -> tensor<3xi64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[GREATER:.*]] = nn.greater %arg0, %[[CONSTANT2]]
// CHECK-NEXT: %[[NOT:.*]] = nn.not %[[GREATER]]
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %arg0, %arg0
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[NOT]], %[[MUL]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[SELECT]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SELECT2:.*]] = nn.select %[[NOT]], %[[CONSTANT]], %[[CONSTANT2]]
// CHECK-NEXT: %[[SELECT3:.*]] = nn.select %[[NOT]], %[[CONSTANT2]], %[[CONSTANT]]
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[SELECT2]], %arg0
// CHECK-NEXT: %[[ADD:.*]] = nn.add %[[MUL2]], %[[MUL2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[ADD]], %[[SELECT3]]
// No gradient passes through the condition.
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<2x3xf32> {train.role = #train.parameter<"b">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %zero = nn.constant dense<0.0> : tensor<2x3xf32>
  %p = nn.greater %a, %zero : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %condition = nn.not %p : (tensor<2x3xi1>) -> tensor<2x3xi1>
  %square = nn.mul %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = nn.select %condition, %square, %b : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[-1.0, -2.0, 3.0, 1.5, 2.5]> : tensor<5xf64>, dense<[-0.5, 2.0, -3.0, 0.25, 1.0]> : tensor<5xf64>],
    check.results = [dense<[1.0, 4.0, -3.0, 0.25, 1.0]> : tensor<5xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<5xf64>
  %p = nn.greater %a, %zero : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xi1>
  %condition = nn.not %p : (tensor<5xi1>) -> tensor<5xi1>
  %square = nn.mul %a, %a : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %y = nn.select %condition, %square, %b : (tensor<5xi1>, tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1xf64>, %b: tensor<1xf64>) -> tensor<1xf64> attributes {
    check.inputs = [dense<[-1.5]> : tensor<1xf64>, dense<[-2.0]> : tensor<1xf64>],
    check.results = [dense<[2.25]> : tensor<1xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<1xf64>
  %p = nn.greater %a, %zero : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xi1>
  %condition = nn.not %p : (tensor<1xi1>) -> tensor<1xi1>
  %square = nn.mul %a, %a : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %y = nn.select %condition, %square, %b : (tensor<1xi1>, tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  return %y : tensor<1xf64>
}
