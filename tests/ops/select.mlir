// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%condition: tensor<4xi1>, %a: tensor<3xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.select %condition, %a, %b : (tensor<4xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// pointwise-c2
func.func @condition_is_bool(%condition: tensor<3xf32>, %a: tensor<3xf32>, %b: tensor<3xf32>) {
  // expected-error@+2 {{the condition is bool}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.select %condition, %a, %b : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// pointwise-c2
func.func @one_element_type(%condition: tensor<3xi1>, %a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error@+2 {{operands have one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.select %condition, %a, %b : (tensor<3xi1>, tensor<3xf32>, tensor<3xf64>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %arg0, %arg1, %arg2
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[SELECT]], %arg3
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SELECT2:.*]] = nn.select %arg0, %arg3, %[[CONSTANT]]
// CHECK-NEXT: %[[SELECT3:.*]] = nn.select %arg0, %[[CONSTANT]], %arg3
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SELECT2]], %[[SELECT3]]
func.func @model(%condition: tensor<2x3xi1> {train.role = #train.input<"condition">},
                 %a: tensor<2x3xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<2x3xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.select %condition, %a, %b : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[-1.0, -2.0, 3.0, 1.5, 2.5]> : tensor<5xf64>, dense<[-0.5, 2.0, -3.0, 0.25, 1.0]> : tensor<5xf64>],
    check.results = [dense<[-1.0, 2.0, -3.0, 1.5, 2.5]> : tensor<5xf64>]} {
  %condition = nn.constant dense<[true, false, false, true, true]> : tensor<5xi1>
  %y = nn.select %condition, %a, %b : (tensor<5xi1>, tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1xf64>, %b: tensor<1xf64>) -> tensor<1xf64> attributes {
    check.inputs = [dense<[1.5]> : tensor<1xf64>, dense<[-2.0]> : tensor<1xf64>],
    check.results = [dense<[-2.0]> : tensor<1xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<1xf64>
  %condition = nn.greater %b, %zero : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xi1>
  %y = nn.select %condition, %a, %b : (tensor<1xi1>, tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  return %y : tensor<1xf64>
}
