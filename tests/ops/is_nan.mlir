// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.is_nan %x : (tensor<3xf32>) -> tensor<4xi1>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xi1>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.is_nan %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[IS_NAN:.*]] = nn.is_nan %arg0
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[IS_NAN]], %arg1, %arg0
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[SELECT]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SELECT2:.*]] = nn.select %[[IS_NAN]], %[[CONSTANT]], %[[CONSTANT2]]
// CHECK-NEXT: %[[SELECT3:.*]] = nn.select %[[IS_NAN]], %[[CONSTANT2]], %[[CONSTANT]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SELECT3]], %[[SELECT2]]
// No gradient passes through the condition.
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<2x3xf32> {train.role = #train.parameter<"b">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %condition = nn.is_nan %a : (tensor<2x3xf32>) -> tensor<2x3xi1>
  %y = nn.select %condition, %b, %a : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[-1.0, -2.0, 3.0, 1.5, 2.5]> : tensor<5xf64>, dense<[-0.5, 2.0, -3.0, 0.25, 1.0]> : tensor<5xf64>],
    check.results = [dense<[1.0, 4.0, -3.0, 0.25, 1.0]> : tensor<5xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<5xf64>
  %positive = nn.greater %a, %zero : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xi1>
  %zeroed = nn.select %positive, %a, %zero : (tensor<5xi1>, tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %quotient = nn.div %zeroed, %zeroed : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %condition = nn.is_nan %quotient : (tensor<5xf64>) -> tensor<5xi1>
  %square = nn.mul %a, %a : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %y = nn.select %condition, %square, %b : (tensor<5xi1>, tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1xf64>, %b: tensor<1xf64>) -> tensor<1xf64> attributes {
    check.inputs = [dense<[1.5]> : tensor<1xf64>, dense<[-2.0]> : tensor<1xf64>],
    check.results = [dense<[-2.0]> : tensor<1xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<1xf64>
  %positive = nn.greater %a, %zero : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xi1>
  %zeroed = nn.select %positive, %a, %zero : (tensor<1xi1>, tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %quotient = nn.div %zeroed, %zeroed : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %condition = nn.is_nan %quotient : (tensor<1xf64>) -> tensor<1xi1>
  %square = nn.mul %a, %a : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %y = nn.select %condition, %square, %b : (tensor<1xi1>, tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  return %y : tensor<1xf64>
}
