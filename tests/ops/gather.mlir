// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// gather-c1
func.func @gather_c1(%table: tensor<f32>, %i: tensor<2xi64>) {
  // expected-error@+2 {{the table has at least one dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.gather %table, %i : (tensor<f32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<0.000000e+00> : tensor<9x4xf32>
// CHECK-NEXT: %[[GATHER:.*]] = nn.gather %arg0, %arg1
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[GATHER]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1, 2>}
// CHECK-NEXT: %[[SCATTER_ADD:.*]] = nn.scatter_add %[[CONSTANT]], %arg1, %arg2
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SCATTER_ADD]]
func.func @model(%table: tensor<9x4xf32> {train.role = #train.parameter<"table">},
                 %ids: tensor<2x3xi64> {train.role = #train.input<"ids">},
                 %weight: tensor<2x3x4xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.gather %table, %ids : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_repeated(%table: tensor<5x3xf64>) -> tensor<2x3x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165]]> : tensor<5x3xf64>],
    check.results = [dense<[[[-0.432, -1.705, 1.165], [1.911, -0.822, -1.676], [-0.432, -1.705, 1.165]], [[-0.891, 1.937, 0.55], [-0.432, -1.705, 1.165], [1.911, -0.822, -1.676]]]> : tensor<2x3x3xf64>]} {
  %i = nn.constant dense<[[4, 0, 4], [2, 4, 0]]> : tensor<2x3xi64>
  %y = nn.gather %table, %i : (tensor<5x3xf64>, tensor<2x3xi64>) -> tensor<2x3x3xf64>
  return %y : tensor<2x3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_vector(%table: tensor<7xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891]> : tensor<7xf64>],
    check.results = [dense<[-0.891, -0.822, -0.822]> : tensor<3xf64>]} {
  %i = nn.constant dense<[6, 1, 1]> : tensor<3xi64>
  %y = nn.gather %table, %i : (tensor<7xf64>, tensor<3xi64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_scalar_index(%table: tensor<3x5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[0.142, 2.087, -0.432, -1.705, 1.165]> : tensor<5xf64>]} {
  %i = nn.constant dense<2> : tensor<i64>
  %y = nn.gather %table, %i : (tensor<3x5xf64>, tensor<i64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%table: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[1.911]]> : tensor<1x1xf64>],
    check.results = [dense<[[1.911]]> : tensor<1x1xf64>]} {
  %i = nn.constant dense<0> : tensor<1xi64>
  %y = nn.gather %table, %i : (tensor<1x1xf64>, tensor<1xi64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
// The table as embedding and as projection: both gradients in one table.
func.func @numbers_tied(%table: tensor<5x3xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165]]> : tensor<5x3xf64>],
    check.results = [dense<[[3.958863, 6.143866, 0.7072240000000002, -5.546188000000001, -4.794893], [-7.241614, -5.546188000000001, 3.1140220000000003, 7.978137, 3.0091810000000003], [3.958863, 6.143866, 0.7072240000000002, -5.546188000000001, -4.794893]]> : tensor<3x5xf64>]} {
  %i = nn.constant dense<[1, 3, 1]> : tensor<3xi64>
  %rows = nn.gather %table, %i : (tensor<5x3xf64>, tensor<3xi64>) -> tensor<3x3xf64>
  %y = nn.matmul %rows, %table {transpose_b} : (tensor<3x3xf64>, tensor<5x3xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
