// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section SOFTMAX %s | %trainc-opt -decompose | %FileCheck %s --check-prefix=SOFTMAX
// RUN: %section NORM %s | %trainc-opt -derive-evaluate -differentiate -decompose | %FileCheck %s --check-prefix=NORM
// RUN: %section ENTROPY %s | %trainc-opt -derive-evaluate -differentiate -decompose | %FileCheck %s --check-prefix=ENTROPY
// RUN: %section POINTWISE %s | %trainc-opt -decompose | %FileCheck %s --check-prefix=POINTWISE

// SOFTMAX
// SOFTMAX-LABEL: func.func @softmax
// SOFTMAX: %[[LARGEST:.*]] = nn.reduce_max %arg0 {dimensions = array<i64: 1>}
// SOFTMAX: %[[WIDE:.*]] = nn.broadcast %[[LARGEST]] {dimensions = array<i64: 0>}
// SOFTMAX: %[[SHIFTED:.*]] = nn.sub %arg0, %[[WIDE]]
// SOFTMAX: %[[EXP:.*]] = nn.exp %[[SHIFTED]]
// SOFTMAX: %[[SUM:.*]] = nn.reduce_sum %[[EXP]] {dimensions = array<i64: 1>}
// SOFTMAX: %[[WIDESUM:.*]] = nn.broadcast %[[SUM]]
// SOFTMAX: %[[Y:.*]] = nn.div %[[EXP]], %[[WIDESUM]]
// The logarithm of the same rows shares maximum, exponentials and sum.
// SOFTMAX: %[[LOG:.*]] = nn.log %[[SUM]]
// SOFTMAX: %[[WIDELOG:.*]] = nn.broadcast %[[LOG]]
// SOFTMAX: %[[Z:.*]] = nn.sub %[[SHIFTED]], %[[WIDELOG]]
// SOFTMAX: return %[[Y]], %[[Z]]
func.func @softmax(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %y = nn.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = nn.log_softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// NORM
// Forward and backward share the mean and the reciprocal deviation: one of each.
// NORM-LABEL: func.func @forward_backward
// NORM: nn.reduce_sum
// NORM: %[[DEVIATION:.*]] = nn.rsqrt
// NORM-NOT: nn.rsqrt
// NORM-NOT: nn.layer_norm
// NORM-LABEL: func.func @evaluate
// NORM: nn.rsqrt
func.func @model(%x: tensor<4x8xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<4x8xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %weight : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// ENTROPY
// One maximum, one sum of exponentials, one count for loss and gradient.
// ENTROPY-LABEL: func.func @forward_backward
// ENTROPY-COUNT-1: nn.reduce_max
// ENTROPY-COUNT-1: nn.exp
// ENTROPY-COUNT-1: nn.iota
// ENTROPY-COUNT-1: nn.log
// ENTROPY-NOT: nn.reduce_max
// ENTROPY-NOT: nn.exp
// ENTROPY-NOT: nn.cross_entropy
// ENTROPY-LABEL: func.func @evaluate
func.func @model(%x: tensor<4x8xf32> {train.role = #train.parameter<"x">},
                 %labels: tensor<4xi64> {train.role = #train.label<"labels">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.cross_entropy %x, %labels {ignore_index = -100 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// POINTWISE
// Composed pointwise operations stay: their scalar code is written when kernels are.
// POINTWISE: nn.gelu %arg0
// POINTWISE: nn.sigmoid
func.func @pointwise(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.gelu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
