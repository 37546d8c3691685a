// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// slice-c1
func.func @slice_c1(%x: tensor<3x3xf32>) {
  // expected-error@+2 {{one entry per dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.slice %x {starts = array<i64: 0>, sizes = array<i64: 1, 1>, strides = array<i64: 1, 1>} : (tensor<3x3xf32>) -> tensor<1x1xf32>
  return
}

// -----

// slice-c2
func.func @slice_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{dimension 0 reads 2 elements from 1 by stride 2 of 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.slice %x {starts = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 2>} : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

// slice-c2
func.func @stride(%x: tensor<3xf32>) {
  // expected-error@+2 {{by stride 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.slice %x {starts = array<i64: 0>, sizes = array<i64: 1>, strides = array<i64: 0>} : (tensor<3xf32>) -> tensor<1xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[SLICE:.*]] = nn.slice %arg0 {sizes = array<i64: 3, 3>, starts = array<i64: 1, 0>, strides = array<i64: 1, 2>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[SLICE]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[PAD:.*]] = nn.pad %arg1 {high = array<i64: 1, 1>, interior = array<i64: 0, 1>, low = array<i64: 1, 0>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[PAD]]
func.func @model(%x: tensor<5x6xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<3x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.slice %x {starts = array<i64: 1, 0>, sizes = array<i64: 3, 3>, strides = array<i64: 1, 2>} : (tensor<5x6xf32>) -> tensor<3x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[SLICE:.*]] = nn.slice %arg0 {sizes = array<i64: 3>, starts = array<i64: 5>, strides = array<i64: -2>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[SLICE]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[REVERSE:.*]] = nn.reverse %arg1 {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[PAD:.*]] = nn.pad %[[REVERSE]] {high = array<i64: 0>, interior = array<i64: 1>, low = array<i64: 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[PAD]]
// A negative stride: reversed, then padded.
func.func @model(%x: tensor<6xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.slice %x {starts = array<i64: 5>, sizes = array<i64: 3>, strides = array<i64: -2>} : (tensor<6xf32>) -> tensor<3xf32>
  %weighted = nn.mul %y, %weight : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_part(%x: tensor<4x5xf64>) -> tensor<2x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165], [1.721, -1.27, -1.033, 1.92, 0.944]]> : tensor<4x5xf64>],
    check.results = [dense<[[1.937, 0.55, -1.898], [-0.432, -1.705, 1.165]]> : tensor<2x3xf64>]} {
  %y = nn.slice %x {starts = array<i64: 1, 2>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<4x5xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_strided(%x: tensor<3x7xf64>) -> tensor<2x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891], [1.937, 0.55, -1.898, 0.142, 2.087, -0.432, -1.705], [1.165, 1.721, -1.27, -1.033, 1.92, 0.944, -1.734]]> : tensor<3x7xf64>],
    check.results = [dense<[[-0.822, 1.299, -1.572], [1.721, -1.033, 0.944]]> : tensor<2x3xf64>]} {
  %y = nn.slice %x {starts = array<i64: 0, 1>, sizes = array<i64: 2, 3>, strides = array<i64: 2, 2>} : (tensor<3x7xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_backwards(%x: tensor<3x7xf64>) -> tensor<3x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891], [1.937, 0.55, -1.898, 0.142, 2.087, -0.432, -1.705], [1.165, 1.721, -1.27, -1.033, 1.92, 0.944, -1.734]]> : tensor<3x7xf64>],
    check.results = [dense<[[-1.734, 1.92, -1.27], [-1.705, 2.087, -1.898], [-0.891, 1.409, -1.676]]> : tensor<3x3xf64>]} {
  %y = nn.slice %x {starts = array<i64: 2, 6>, sizes = array<i64: 3, 3>, strides = array<i64: -1, -2>} : (tensor<3x7xf64>) -> tensor<3x3xf64>
  return %y : tensor<3x3xf64>
}

// -----

// NUMBERS
// As a fused projection is split: the gradients of the parts are summed.
func.func @numbers_halves(%x: tensor<3x6xf64>) -> tensor<3x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409, -1.572], [-0.891, 1.937, 0.55, -1.898, 0.142, 2.087], [-0.432, -1.705, 1.165, 1.721, -1.27, -1.033]]> : tensor<3x6xf64>],
    check.results = [dense<[[2.482389, -1.158198, 2.634672], [1.691118, 0.27505399999999997, 1.1478500000000003], [-0.743472, 2.16535, -1.2034449999999999]]> : tensor<3x3xf64>]} {
  %a = nn.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 3, 3>, strides = array<i64: 1, 1>} : (tensor<3x6xf64>) -> tensor<3x3xf64>
  %b = nn.slice %x {starts = array<i64: 0, 3>, sizes = array<i64: 3, 3>, strides = array<i64: 1, 1>} : (tensor<3x6xf64>) -> tensor<3x3xf64>
  %y = nn.mul %a, %b : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %y : tensor<3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x3xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676]]> : tensor<1x3xf64>],
    check.results = [dense<[[-0.822]]> : tensor<1x1xf64>]} {
  %y = nn.slice %x {starts = array<i64: 0, 1>, sizes = array<i64: 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x3xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}
