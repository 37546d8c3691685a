// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// concat-c1
func.func @concat_c1() {
  // expected-error@+2 {{expects at least one operand}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.concat {dimension = 0 : i64} : () -> tensor<3xf32>
  return
}

// -----

// concat-c1
func.func @dimension(%a: tensor<3xf32>) {
  // expected-error@+2 {{dimension 1 is out of range for rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.concat %a, %a {dimension = 1 : i64} : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>
  return
}

// -----

// concat-c2
func.func @concat_c2(%a: tensor<3x2xf32>, %b: tensor<3x4xf32>) {
  // expected-error@+2 {{operands agree but for dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.concat %a, %b {dimension = 0 : i64} : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<6x2xf32>
  return
}

// -----

// concat-c2
func.func @types(%a: tensor<3x2xf32>, %b: tensor<3x2xf64>) {
  // expected-error@+2 {{operands agree but for dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.concat %a, %b {dimension = 0 : i64} : (tensor<3x2xf32>, tensor<3x2xf64>) -> tensor<6x2xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONCAT:.*]] = nn.concat %arg0, %arg1, %arg2 {dimension = 1 : i64}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[CONCAT]], %arg3
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[SLICE:.*]] = nn.slice %arg3 {sizes = array<i64: 2, 3>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>}
// CHECK-NEXT: %[[SLICE2:.*]] = nn.slice %arg3 {sizes = array<i64: 2, 4>, starts = array<i64: 0, 3>, strides = array<i64: 1, 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SLICE]], %[[SLICE2]]
// The input c needs no gradient.
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<2x4xf32> {train.role = #train.parameter<"b">},
                 %c: tensor<2x1xf32> {train.role = #train.input<"c">},
                 %weight: tensor<2x8xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.concat %a, %b, %c {dimension = 1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_last(%a: tensor<2x3xf64>, %b: tensor<2x1xf64>, %c: tensor<2x2xf64>) -> tensor<2x6xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572]]> : tensor<2x3xf64>,
                    dense<[[1.227], [-1.714]]> : tensor<2x1xf64>,
                    dense<[[0.102, -1.984], [0.432, 1.918]]> : tensor<2x2xf64>],
    check.results = [dense<[[1.911, -0.822, -1.676, 1.227, 0.102, -1.984], [1.299, 1.409, -1.572, -1.714, 0.432, 1.918]]> : tensor<2x6xf64>]} {
  %y = nn.concat %a, %b, %c {dimension = 1 : i64} : (tensor<2x3xf64>, tensor<2x1xf64>, tensor<2x2xf64>) -> tensor<2x6xf64>
  return %y : tensor<2x6xf64>
}

// -----

// NUMBERS
func.func @numbers_first(%a: tensor<3x2xf64>, %b: tensor<1x2xf64>) -> tensor<4x2xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572]]> : tensor<3x2xf64>,
                    dense<[[1.227, -1.714]]> : tensor<1x2xf64>],
    check.results = [dense<[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572], [1.227, -1.714]]> : tensor<4x2xf64>]} {
  %y = nn.concat %a, %b {dimension = 0 : i64} : (tensor<3x2xf64>, tensor<1x2xf64>) -> tensor<4x2xf64>
  return %y : tensor<4x2xf64>
}

// -----

// NUMBERS
func.func @numbers_same_operand_twice(%a: tensor<1x2x3xf64>) -> tensor<1x4x3xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572]]]> : tensor<1x2x3xf64>],
    check.results = [dense<[[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [1.911, -0.822, -1.676], [1.299, 1.409, -1.572]]]> : tensor<1x4x3xf64>]} {
  %y = nn.concat %a, %a {dimension = 1 : i64} : (tensor<1x2x3xf64>, tensor<1x2x3xf64>) -> tensor<1x4x3xf64>
  return %y : tensor<1x4x3xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1xf64>) -> tensor<1xf64> attributes {
    check.inputs = [dense<[1.911]> : tensor<1xf64>],
    check.results = [dense<[1.911]> : tensor<1xf64>]} {
  %y = nn.concat %a {dimension = 0 : i64} : (tensor<1xf64>) -> tensor<1xf64>
  return %y : tensor<1xf64>
}

// -----

// NUMBERS
// The gradient of b is padding throughout: there the element of the concatenation is that of no part.
func.func @numbers_position_of_no_part(%a: tensor<2x2xf64>, %b: tensor<2x2xf64>) -> tensor<1x1xf64> {
  %0 = nn.concat %a, %b {dimension = 0 : i64} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<4x2xf64>
  %1 = nn.slice %0 {starts = array<i64: 0, 1>, sizes = array<i64: 1, 1>, strides = array<i64: -1, 2>} : (tensor<4x2xf64>) -> tensor<1x1xf64>
  %2 = nn.abs %1 : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %2 : tensor<1x1xf64>
}
