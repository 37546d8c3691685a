// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// iota-c1
func.func @iota_c1() {
  // expected-error@+1 {{dimension 2 is out of range for rank 2}}
  %0 = nn.iota {dimension = 2 : i64} : () -> tensor<3x2xi64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[IOTA:.*]] = nn.iota  {dimension = 1 : i64}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %arg0, %[[IOTA]]
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[MUL]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL2]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %arg1, %[[IOTA]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL3]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %i = nn.iota {dimension = 1 : i64} : () -> tensor<2x3xf32>
  %y = nn.mul %x, %i : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_rows(%x: tensor<3x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[[0.0, -0.0, -0.0, 0.0, 0.0], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.284, 4.174, -0.864, -3.41, 2.33]]> : tensor<3x5xf64>]} {
  %i = nn.iota {dimension = 0 : i64} : () -> tensor<3x5xf64>
  %y = nn.mul %x, %i : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_integers(%x: tensor<2x1x7xf64>) -> tensor<2x1x7xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891]], [[1.937, 0.55, -1.898, 0.142, 2.087, -0.432, -1.705]]]> : tensor<2x1x7xf64>],
    check.results = [dense<[[[0.0, -0.822, -3.352, 3.897, 5.636, -7.86, -5.346]], [[0.0, 0.55, -3.796, 0.42599999999999993, 8.348, -2.16, -10.23]]]> : tensor<2x1x7xf64>]} {
  %i = nn.iota {dimension = 2 : i64} : () -> tensor<2x1x7xi64>
  %f = nn.cast %i : (tensor<2x1x7xi64>) -> tensor<2x1x7xf64>
  %y = nn.mul %x, %f : (tensor<2x1x7xf64>, tensor<2x1x7xf64>) -> tensor<2x1x7xf64>
  return %y : tensor<2x1x7xf64>
}
