// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// batch_norm-c1
func.func @batch_norm_c1(%x: tensor<3xf32>) {
  // expected-error@+2 {{rank is at least 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.batch_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// batch_norm-c1
func.func @epsilon(%x: tensor<3x2xf32>) {
  // expected-error@+2 {{epsilon is not negative}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.batch_norm %x {epsilon = -1.0 : f64} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return
}

// -----

// batch_norm-c1
func.func @float(%x: tensor<3x2xi64>) {
  // expected-error@+1 {{must be}}
  %0 = nn.batch_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<3x2xi64>) -> tensor<3x2xi64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK: %[[Y:.*]] = nn.batch_norm %arg0 {epsilon = 1.000000e-05 : f64}
// CHECK: %[[SUM:.*]] = nn.reduce_sum %arg0 {dimensions = array<i64: 0, 2>}
// CHECK: %[[MEAN:.*]] = nn.div %[[SUM]]
// CHECK: %[[SPREAD:.*]] = nn.broadcast %[[MEAN]] {dimensions = array<i64: 1>}
// CHECK: %[[CENTERED:.*]] = nn.sub %arg0, %[[SPREAD]]
// CHECK: nn.rsqrt
// CHECK: nn.reduce_sum %arg1 {dimensions = array<i64: 0, 2>}
// CHECK: %[[PRODUCT:.*]] = nn.mul %arg1
// CHECK: nn.reduce_sum %[[PRODUCT]] {dimensions = array<i64: 0, 2>}
func.func @model(%x: tensor<2x3x4xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3x4xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.batch_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_images(%x: tensor<2x3x2x1xf64>) -> tensor<2x3x2x1xf64> attributes {
    check.inputs = [dense<[[[[-0.802], [-1.324]], [[-0.248], [0.42]], [[1.136], [0.11]]], [[[-0.553], [-0.785]], [[0.749], [1.635]], [[0.273], [-1.233]]]]> : tensor<2x3x2x1xf64>],
    check.results = [dense<[[[[0.22683129970645768], [-1.6232614885243364]], [[-1.3082062278292488], [-0.32299567519121253]], [[1.2551780997501307], [0.04539629576362617]]], [[[1.1093468251268939], [0.2870833636909855]], [[0.162235270643988], [1.4689666323764732]], [[0.23759359990573173], [-1.5381679954194887]]]]> : tensor<2x3x2x1xf64>]} {
  %y = nn.batch_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<2x3x2x1xf64>) -> tensor<2x3x2x1xf64>
  return %y : tensor<2x3x2x1xf64>
}

// -----

// NUMBERS
func.func @numbers_rows(%x: tensor<3x2xf64>) -> tensor<3x2xf64> attributes {
    check.inputs = [dense<[[1.053, 1.776], [-2.553, -0.138], [1.014, 1.352]]> : tensor<3x2xf64>],
    check.results = [dense<[[0.7063602513597386, 0.8860083745268248], [-1.3900472107005226, -1.2899796864368314], [0.6836869593407839, 0.40397131191000657]]> : tensor<3x2xf64>]} {
  %y = nn.batch_norm %x {epsilon = 0.1 : f64} : (tensor<3x2xf64>) -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}
