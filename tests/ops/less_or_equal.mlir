// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%a: tensor<3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.less_or_equal %a, %b : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xi1>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error@+2 {{operands have one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.less_or_equal %a, %b : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xi1>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[LESS_OR_EQUAL:.*]] = nn.less_or_equal %arg0, %arg1
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[LESS_OR_EQUAL]], %arg0, %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[SELECT]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SELECT2:.*]] = nn.select %[[LESS_OR_EQUAL]], %[[CONSTANT]], %[[CONSTANT2]]
// CHECK-NEXT: %[[SELECT3:.*]] = nn.select %[[LESS_OR_EQUAL]], %[[CONSTANT2]], %[[CONSTANT]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SELECT2]], %[[SELECT3]]
// No gradient passes through the condition.
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<2x3xf32> {train.role = #train.parameter<"b">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %condition = nn.less_or_equal %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %y = nn.select %condition, %a, %b : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<7xf64>, %b: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>, dense<[1.5, -1.75, 2.0, -1.25, 0.5, 3.0, 0.625]> : tensor<7xf64>],
    check.results = [dense<[6.25, -1.75, 0.25, -1.25, 0.5, 2.25, 0.625]> : tensor<7xf64>]} {
  %condition = nn.less_or_equal %a, %b : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xi1>
  %square = nn.mul %a, %a : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  %y = nn.select %condition, %square, %b : (tensor<7xi1>, tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1x1xf64>, %b: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>, dense<[[0.5]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.5]]> : tensor<1x1xf64>]} {
  %condition = nn.less_or_equal %a, %b : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xi1>
  %square = nn.mul %a, %a : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  %y = nn.select %condition, %square, %b : (tensor<1x1xi1>, tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
// Ties and integers, without a gradient.
func.func @numbers_ties(%x: tensor<4xf64>) -> tensor<4xf64> attributes {
    check.inputs = [dense<[2.0, 3.0, 4.0, 5.0]> : tensor<4xf64>],
    check.results = [dense<[4.0, 9.0, 4.0, 25.0]> : tensor<4xf64>]} {
  %a = nn.constant dense<[1, 2, -3, 7]> : tensor<4xi64>
  %b = nn.constant dense<[1, 3, -4, 7]> : tensor<4xi64>
  %condition = nn.less_or_equal %a, %b : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  %square = nn.mul %x, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %y = nn.select %condition, %square, %x : (tensor<4xi1>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// NUMBERS
func.func @numbers_with_itself(%x: tensor<3xi64>) -> tensor<3xi1> attributes {
    check.inputs = [dense<[0, -7, 9]> : tensor<3xi64>], check.results = [dense<true> : tensor<3xi1>]} {
  %y = nn.less_or_equal %x, %x : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
  return %y : tensor<3xi1>
}
