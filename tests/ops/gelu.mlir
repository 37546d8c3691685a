// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.gelu %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.gelu %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<-5.000000e-01> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<0.398942292> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT3:.*]] = nn.constant dense<5.000000e-01> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT4:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT5:.*]] = nn.constant dense<0.707106769> : tensor<2x3xf32>
// CHECK-NEXT: %[[GELU:.*]] = nn.gelu %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[GELU]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %arg0, %[[CONSTANT5]]
// CHECK-NEXT: %[[ERF:.*]] = nn.erf %[[MUL2]]
// CHECK-NEXT: %[[ADD:.*]] = nn.add %[[CONSTANT4]], %[[ERF]]
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %[[CONSTANT3]], %[[ADD]]
// CHECK-NEXT: %[[MUL4:.*]] = nn.mul %arg0, %[[CONSTANT2]]
// CHECK-NEXT: %[[MUL5:.*]] = nn.mul %[[CONSTANT]], %arg0
// CHECK-NEXT: %[[MUL6:.*]] = nn.mul %[[MUL5]], %arg0
// CHECK-NEXT: %[[EXP:.*]] = nn.exp %[[MUL6]]
// CHECK-NEXT: %[[MUL7:.*]] = nn.mul %[[MUL4]], %[[EXP]]
// CHECK-NEXT: %[[ADD2:.*]] = nn.add %[[MUL3]], %[[MUL7]]
// CHECK-NEXT: %[[MUL8:.*]] = nn.mul %arg1, %[[ADD2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL8]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.gelu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>],
    check.results = [dense<[-0.015524163314440398, -0.13206221708356913, -0.15426876936299344, 0.14967658142073093, 0.5800294857173488, 1.399789198096713, 2.99595030590511]> : tensor<7xf64>]} {
  %y = nn.gelu %x : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.5800294857173488]]> : tensor<1x1xf64>]} {
  %y = nn.gelu %x : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
