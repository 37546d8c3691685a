// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// Element types are those of the dialect; the type is that of the value.
func.func @constant() {
  // expected-error@+1 {{must be}}
  %0 = nn.constant dense<1.0> : tensor<3xtf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<[2.000000e+00, 3.000000e+00]> : tensor<2xf32>
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %arg0, %[[CONSTANT]]
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[MUL]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL2]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %arg1, %[[CONSTANT]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL3]]
func.func @model(%x: tensor<2xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %c = nn.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %y = nn.mul %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %weighted = nn.mul %y, %weight : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_dense(%x: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>],
    check.results = [dense<[0.19110000000000002, 1.644, -16760000000.0]> : tensor<3xf64>]} {
  %c = nn.constant dense<[0.1, -2.0, 1.0e+10]> : tensor<3xf64>
  %y = nn.mul %x, %c : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_splat(%x: tensor<1x3xf64>) -> tensor<1x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676]]> : tensor<1x3xf64>],
    check.results = [dense<[[-1.4332500000000001, 0.6164999999999999, 1.257]]> : tensor<1x3xf64>]} {
  %c = nn.constant dense<-0.75> : tensor<1x3xf64>
  %y = nn.mul %x, %c : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<1x3xf64>
  return %y : tensor<1x3xf64>
}

// -----

// NUMBERS
func.func @numbers_integer(%x: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>],
    check.results = [dense<[1.911, 1.644, -5.028]> : tensor<3xf64>]} {
  %i = nn.constant dense<[1, -2, 3]> : tensor<3xi64>
  %c = nn.cast %i : (tensor<3xi64>) -> tensor<3xf64>
  %y = nn.mul %x, %c : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_bool(%x: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>],
    check.results = [dense<[1.911, 0.822, -1.676]> : tensor<3xf64>]} {
  %c = nn.constant dense<[true, false, true]> : tensor<3xi1>
  %n = nn.neg %x : (tensor<3xf64>) -> tensor<3xf64>
  %y = nn.select %c, %x, %n : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
