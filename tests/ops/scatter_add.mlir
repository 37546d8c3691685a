// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// scatter_add-c1
func.func @scatter_add_c1(%t: tensor<5x3xf32>, %i: tensor<2xi64>, %u: tensor<2x4xf32>) {
  // expected-error@+2 {{updates have shape indices x rows of the table}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.scatter_add %t, %i, %u : (tensor<5x3xf32>, tensor<2xi64>, tensor<2x4xf32>) -> tensor<5x3xf32>
  return
}

// -----

// scatter_add-c2
func.func @scatter_add_c2(%t: tensor<5x3xf32>, %i: tensor<2xi64>, %u: tensor<2x3xf64>) {
  // expected-error@+2 {{table and updates agree in element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.scatter_add %t, %i, %u : (tensor<5x3xf32>, tensor<2xi64>, tensor<2x3xf64>) -> tensor<5x3xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[SCATTER_ADD:.*]] = nn.scatter_add %arg0, %arg1, %arg2
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[SCATTER_ADD]], %arg3
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[GATHER:.*]] = nn.gather %arg3, %arg1
// CHECK-NEXT: return %[[REDUCE_SUM]], %arg3, %[[GATHER]]
func.func @model(%table: tensor<9x4xf32> {train.role = #train.parameter<"table">},
                 %ids: tensor<2x3xi64> {train.role = #train.input<"ids">},
                 %updates: tensor<2x3x4xf32> {train.role = #train.parameter<"updates">},
                 %weight: tensor<9x4xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.scatter_add %table, %ids, %updates : (tensor<9x4xf32>, tensor<2x3xi64>, tensor<2x3x4xf32>) -> tensor<9x4xf32>
  %weighted = nn.mul %y, %weight : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<9x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_repeated(%table: tensor<5x3xf64>, %updates: tensor<2x2x3xf64>) -> tensor<5x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165]]> : tensor<5x3xf64>,
                    dense<[[[1.227, -1.714, -0.763], [1.956, 0.327, -1.95]], [[0.288, 2.011, -0.649], [-1.663, 1.28, 1.559]]]> : tensor<2x2x3xf64>],
    check.results = [dense<[[3.867, -0.49499999999999994, -3.626], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087], [-0.5799999999999998, -0.1279999999999999, 1.3119999999999998]]> : tensor<5x3xf64>]} {
  %i = nn.constant dense<[[4, 0], [4, 4]]> : tensor<2x2xi64>
  %y = nn.scatter_add %table, %i, %updates : (tensor<5x3xf64>, tensor<2x2xi64>, tensor<2x2x3xf64>) -> tensor<5x3xf64>
  return %y : tensor<5x3xf64>
}

// -----

// NUMBERS
func.func @numbers_into_zeros(%updates: tensor<3xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>],
    check.results = [dense<[0.0, -2.4979999999999998, 0.0, 0.0, 0.0, 0.0, 1.911]> : tensor<7xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<7xf64>
  %i = nn.constant dense<[6, 1, 1]> : tensor<3xi64>
  %y = nn.scatter_add %zero, %i, %updates : (tensor<7xf64>, tensor<3xi64>, tensor<3xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_into_a_sum(%a: tensor<3x2xf64>, %updates: tensor<4x2xf64>) -> tensor<3x2xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572]]> : tensor<3x2xf64>,
                    dense<[[1.227, -1.714], [-0.763, 1.956], [0.327, -1.95], [0.288, 2.011]]> : tensor<4x2xf64>],
    check.results = [dense<[[1.1480000000000001, 1.134], [-1.676, 1.299], [3.2510000000000003, -3.2249999999999996]]> : tensor<3x2xf64>]} {
  %zero = nn.constant dense<0.0> : tensor<3x2xf64>
  %i = nn.constant dense<[2, 0, 2, 2]> : tensor<4xi64>
  %rows = nn.scatter_add %zero, %i, %updates : (tensor<3x2xf64>, tensor<4xi64>, tensor<4x2xf64>) -> tensor<3x2xf64>
  %y = nn.add %rows, %a : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%table: tensor<1x1xf64>, %updates: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[1.911]]> : tensor<1x1xf64>,
                    dense<[[1.227]]> : tensor<1x1xf64>],
    check.results = [dense<[[3.138]]> : tensor<1x1xf64>]} {
  %i = nn.constant dense<0> : tensor<1xi64>
  %y = nn.scatter_add %table, %i, %updates : (tensor<1x1xf64>, tensor<1xi64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
