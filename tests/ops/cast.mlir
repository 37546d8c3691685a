// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// A cast keeps the shape; it has no constraint of its own.
func.func @shape(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.cast %x : (tensor<3xf32>) -> tensor<4xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[CAST]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[CAST2:.*]] = nn.cast %arg1
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[CAST2]]
func.func @model(%x: tensor<3xf64> {train.role = #train.parameter<"x">},
                 %weight: tensor<3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.cast %x : (tensor<3xf64>) -> tensor<3xf32>
  %weighted = nn.mul %y, %weight : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
// Truncates; no gradient through the integer.
func.func @numbers_float_to_integer(%x: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[1.75, -0.5, -2.75, 7.25, 3.5]> : tensor<5xf64>],
    check.results = [dense<[1.75, -0.0, 5.5, 50.75, 10.5]> : tensor<5xf64>]} {
  %integer = nn.cast %x : (tensor<5xf64>) -> tensor<5xi64>
  %whole = nn.cast %integer : (tensor<5xi64>) -> tensor<5xf64>
  %y = nn.mul %whole, %x : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_bool_to_float(%x: tensor<1x5xf64>) -> tensor<1x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409]]> : tensor<1x5xf64>],
    check.results = [dense<[[1.911, -0.0, -0.0, 1.299, 1.409]]> : tensor<1x5xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<1x5xf64>
  %positive = nn.greater %x, %zero : (tensor<1x5xf64>, tensor<1x5xf64>) -> tensor<1x5xi1>
  %one = nn.cast %positive : (tensor<1x5xi1>) -> tensor<1x5xf64>
  %y = nn.mul %one, %x : (tensor<1x5xf64>, tensor<1x5xf64>) -> tensor<1x5xf64>
  return %y : tensor<1x5xf64>
}

// -----

// NUMBERS
func.func @numbers_integer_to_bool(%x: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>],
    check.results = [dense<[0.0, -0.822, -1.676]> : tensor<3xf64>]} {
  %integer = nn.constant dense<[0, 5, -1]> : tensor<3xi64>
  %nonzero = nn.cast %integer : (tensor<3xi64>) -> tensor<3xi1>
  %one = nn.cast %nonzero : (tensor<3xi1>) -> tensor<3xf64>
  %y = nn.mul %one, %x : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1xf64>) -> tensor<1xf64> attributes {
    check.inputs = [dense<[1.911]> : tensor<1xf64>],
    check.results = [dense<[1.911]> : tensor<1xf64>]} {
  %integer = nn.cast %x : (tensor<1xf64>) -> tensor<1xi64>
  %whole = nn.cast %integer : (tensor<1xi64>) -> tensor<1xf64>
  %y = nn.mul %whole, %x : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  return %y : tensor<1xf64>
}

// -----

// NUMBERS
// What a byte does not hold wraps; a constant above half of its range is not a negative number.
func.func @numbers_byte(%x: tensor<3xf64>) -> (tensor<3xui8>, tensor<3xf64>) attributes {
    check.inputs = [dense<[300.5, 200.25, 3.5]> : tensor<3xf64>],
    check.results = [dense<[44, 200, 3]> : tensor<3xui8>, dense<[73322.0, 80100.0, 710.5]> : tensor<3xf64>]} {
  %byte = nn.cast %x : (tensor<3xf64>) -> tensor<3xui8>
  %most = nn.constant dense<200> : tensor<3xui8>
  %real = nn.cast %byte : (tensor<3xui8>) -> tensor<3xf64>
  %other = nn.cast %most : (tensor<3xui8>) -> tensor<3xf64>
  %sum = nn.add %real, %other : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %y = nn.mul %sum, %x : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %byte, %y : tensor<3xui8>, tensor<3xf64>
}
