// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.erf %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.erf %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<1.12837923> : tensor<2x3xf32>
// CHECK-NEXT: %[[ERF:.*]] = nn.erf %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[ERF]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %arg1, %[[CONSTANT]]
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %arg0, %arg0
// CHECK-NEXT: %[[NEG:.*]] = nn.neg %[[MUL3]]
// CHECK-NEXT: %[[EXP:.*]] = nn.exp %[[NEG]]
// CHECK-NEXT: %[[MUL4:.*]] = nn.mul %[[MUL2]], %[[EXP]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL4]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.erf %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>],
    check.results = [dense<[-0.999593047982555, -0.9229001282564582, -0.5204998778130465, 0.2763263901682369, 0.7111556336535151, 0.9661051464753108, 0.9999779095030014]> : tensor<7xf64>]} {
  %y = nn.erf %x : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.7111556336535151]]> : tensor<1x1xf64>]} {
  %y = nn.erf %x : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
