// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%a: tensor<3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.remainder %a, %b : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error@+2 {{operands have one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.remainder %a, %b : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[REMAINDER:.*]] = nn.remainder %arg0, %arg1
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[REMAINDER]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %arg0, %[[REMAINDER]]
// CHECK-NEXT: %[[DIV:.*]] = nn.div %[[SUB]], %arg1
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %arg2, %[[DIV]]
// CHECK-NEXT: %[[NEG:.*]] = nn.neg %[[MUL2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %arg2, %[[NEG]]
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">}, %b: tensor<2x3xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.remainder %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<7xf64>, %b: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>, dense<[1.5, -0.75, 2.0, -1.25, 0.5, -3.0, 0.625]> : tensor<7xf64>],
    check.results = [dense<[-1.0, -0.5, -0.5, 0.25, 0.25, 1.5, 0.5]> : tensor<7xf64>]} {
  %y = nn.remainder %a, %b : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1x1xf64>, %b: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>, dense<[[0.5]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.25]]> : tensor<1x1xf64>]} {
  %y = nn.remainder %a, %b : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
// Integers: neither the least number by -1 nor a divisor outside what is padded ends the program.
func.func @numbers_traps(%a: tensor<3xi64>, %b: tensor<3xi64>) -> (tensor<3xi64>, tensor<3xi64>, tensor<7xi64>) attributes {
    check.inputs = [dense<[-9223372036854775808, 7, -9]> : tensor<3xi64>, dense<[-1, -1, 4]> : tensor<3xi64>],
    check.results = [dense<[-9223372036854775808, -7, -2]> : tensor<3xi64>, dense<[0, 0, -1]> : tensor<3xi64>, dense<[0, 0, 0, 0, 0, -1, 0]> : tensor<7xi64>]} {
  %q = nn.div %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %r = nn.remainder %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %p = nn.pad %r {low = array<i64: 3>, high = array<i64: 1>, interior = array<i64: 0>} : (tensor<3xi64>) -> tensor<7xi64>
  return %q, %r, %p : tensor<3xi64>, tensor<3xi64>, tensor<7xi64>
}

// -----

// NUMBERS
// The index is computed for every element, its divisor is in memory for those that are not padding.
func.func @numbers_divisor_outside(%x: tensor<3xf64>) -> tensor<6xf64> {
  %a = nn.constant dense<[5, 4, 3]> : tensor<3xi64>
  %b = nn.constant dense<[3, 2, 7]> : tensor<3xi64>
  %r = nn.remainder %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %three = nn.constant dense<3> : tensor<3xi64>
  %i = nn.remainder %r, %three : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %g = nn.gather %x, %i : (tensor<3xf64>, tensor<3xi64>) -> tensor<3xf64>
  %y = nn.concat %x, %g {dimension = 0 : i64} : (tensor<3xf64>, tensor<3xf64>) -> tensor<6xf64>
  return %y : tensor<6xf64>
}
