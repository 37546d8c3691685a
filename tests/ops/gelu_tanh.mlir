// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.gelu_tanh %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.gelu_tanh %x : (tensor<3xf32>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<1.341450e-01> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<5.000000e-01> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT3:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT4:.*]] = nn.constant dense<0.797884583> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT5:.*]] = nn.constant dense<4.471500e-02> : tensor<2x3xf32>
// CHECK-NEXT: %[[GELU_TANH:.*]] = nn.gelu_tanh %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[GELU_TANH]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[CONSTANT5]], %arg0
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %[[MUL2]], %arg0
// CHECK-NEXT: %[[MUL4:.*]] = nn.mul %[[MUL3]], %arg0
// CHECK-NEXT: %[[ADD:.*]] = nn.add %arg0, %[[MUL4]]
// CHECK-NEXT: %[[MUL5:.*]] = nn.mul %[[CONSTANT4]], %[[ADD]]
// CHECK-NEXT: %[[TANH:.*]] = nn.tanh %[[MUL5]]
// CHECK-NEXT: %[[ADD2:.*]] = nn.add %[[CONSTANT3]], %[[TANH]]
// CHECK-NEXT: %[[MUL6:.*]] = nn.mul %[[CONSTANT2]], %[[ADD2]]
// CHECK-NEXT: %[[MUL7:.*]] = nn.mul %[[CONSTANT2]], %arg0
// CHECK-NEXT: %[[MUL8:.*]] = nn.mul %[[TANH]], %[[TANH]]
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %[[CONSTANT3]], %[[MUL8]]
// CHECK-NEXT: %[[MUL9:.*]] = nn.mul %[[MUL7]], %[[SUB]]
// CHECK-NEXT: %[[MUL10:.*]] = nn.mul %[[MUL9]], %[[CONSTANT4]]
// CHECK-NEXT: %[[MUL11:.*]] = nn.mul %[[CONSTANT]], %arg0
// CHECK-NEXT: %[[MUL12:.*]] = nn.mul %[[MUL11]], %arg0
// CHECK-NEXT: %[[ADD3:.*]] = nn.add %[[CONSTANT3]], %[[MUL12]]
// CHECK-NEXT: %[[MUL13:.*]] = nn.mul %[[MUL10]], %[[ADD3]]
// CHECK-NEXT: %[[ADD4:.*]] = nn.add %[[MUL6]], %[[MUL13]]
// CHECK-NEXT: %[[MUL14:.*]] = nn.mul %arg1, %[[ADD4]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL14]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.gelu_tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>],
    check.results = [dense<[-0.015084266089998577, -0.13228579703028542, -0.15428599017485606, 0.149675350701685, 0.5799605551656203, 1.3995715769802328, 2.996362607918227]> : tensor<7xf64>]} {
  %y = nn.gelu_tanh %x : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.5799605551656203]]> : tensor<1x1xf64>]} {
  %y = nn.gelu_tanh %x : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
