// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.atanh %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.atanh %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[ATANH:.*]] = nn.atanh %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[ATANH]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %[[CONSTANT]], %arg0
// CHECK-NEXT: %[[ADD:.*]] = nn.add %[[CONSTANT]], %arg0
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[SUB]], %[[ADD]]
// CHECK-NEXT: %[[DIV:.*]] = nn.div %arg1, %[[MUL2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[DIV]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.atanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-0.95, -0.6, -0.5, 1.0e-09, 0.25, 0.5, 0.75]> : tensor<7xf64>],
    check.results = [dense<[-1.8317808230648231, -0.6931471805599453, -0.5493061443340549, 1.0e-09, 0.25541281188299536, 0.5493061443340549, 0.9729550745276566]> : tensor<7xf64>]} {
  %y = nn.atanh %x : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.9729550745276566]]> : tensor<1x1xf64>]} {
  %y = nn.atanh %x : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
