// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// reduce_sum-c1
func.func @reduce_sum_c1(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{dimensions are increasing and within rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.reduce_sum %x {dimensions = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

// reduce_sum-c1
func.func @decreasing(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{dimensions are increasing and within rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.reduce_sum %x {dimensions = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %arg0 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[REDUCE_SUM]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %arg1 {dimensions = array<i64: 0>}
// CHECK-NEXT: return %[[REDUCE_SUM2]], %[[BROADCAST]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  %weighted = nn.mul %y, %weight : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_rows(%x: tensor<3x5xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[2.1210000000000004, -1.8739999999999994, 1.2570000000000001]> : tensor<3xf64>]} {
  %y = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<3x5xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_columns(%x: tensor<5x3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165]]> : tensor<5x3xf64>],
    check.results = [dense<[-0.010999999999999899, 0.961, 0.554]> : tensor<3xf64>]} {
  %y = nn.reduce_sum %x {dimensions = array<i64: 0>} : (tensor<5x3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_all(%x: tensor<3x5xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<1.5040000000000004> : tensor<f64>]} {
  %y = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<3x5xf64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
func.func @numbers_outer_and_inner(%x: tensor<2x3x5xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]], [[1.721, -1.27, -1.033, 1.92, 0.944], [-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]> : tensor<2x3x5xf64>],
    check.results = [dense<[4.4030000000000005, -3.155999999999999, 4.0440000000000005]> : tensor<3xf64>]} {
  %y = nn.reduce_sum %x {dimensions = array<i64: 0, 2>} : (tensor<2x3x5xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_middle(%x: tensor<2x3x5xf64>) -> tensor<2x5xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]], [[1.721, -1.27, -1.033, 1.92, 0.944], [-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]> : tensor<2x3x5xf64>],
    check.results = [dense<[[0.481, 0.3740000000000001, -0.17099999999999987, 0.1439999999999999, 0.6760000000000002], [0.9950000000000001, 0.6819999999999999, 0.2520000000000002, 0.744, 1.1139999999999999]]> : tensor<2x5xf64>]} {
  %y = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<2x3x5xf64>) -> tensor<2x5xf64>
  return %y : tensor<2x5xf64>
}

// -----

// NUMBERS
func.func @numbers_long(%x: tensor<3x37xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891, 1.937, 0.55, -1.898, 0.142, 2.087, -0.432, -1.705, 1.165, 1.721, -1.27, -1.033, 1.92, 0.944, -1.734, -0.046, 2.22, -0.029, -1.693, 1.008, 1.998, -0.935, -1.147, 1.863, 1.322, -1.527, -0.229, 2.308, 0.379, -1.638, 0.833], [2.236, -0.574, -1.23, 1.772, 1.677, -1.278, -0.399, 2.352, 0.786, -1.538, 0.649, 2.432, -0.192, -1.277, 1.65, 2.003, -0.992, -0.551, 2.353, 1.186, -1.394, 0.46, 2.585, 0.206, -1.284, 1.502, 2.296, -0.671, -0.679, 2.314, 1.572, -1.206, 0.274, 2.694, 0.613, -1.248, 1.335], [2.553, -0.322, -0.776, 2.238, 1.938, -0.976, 0.097, 2.757, 1.021, -1.169, 1.154, 2.768, 0.052, -0.84, 2.129, 2.278, -0.707, -0.064, 2.778, 1.426, -1.045, 0.966, 2.941, 0.444, -0.866, 1.992, 2.587, -0.401, -0.204, 2.756, 1.819, -0.877, 0.778, 3.07, 0.847, -0.85, 1.833]]> : tensor<3x37xf64>],
    check.results = [dense<[6.739000000000001, 20.434, 34.125]> : tensor<3xf64>]} {
  %y = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<3x37xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676]]> : tensor<1x3xf64>],
    check.results = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>]} {
  %y = nn.reduce_sum %x {dimensions = array<i64: 0>} : (tensor<1x3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// What is the same along all that is reduced: loops without a use of their index.
// NUMBERS
func.func @numbers_same_in_a_row(%x: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[1.5, -0.25, 4.0]> : tensor<3xf64>],
    check.results = [dense<[30.0, -5.0, 80.0]> : tensor<3xf64>]} {
  %rows = nn.broadcast %x {dimensions = array<i64: 0>} : (tensor<3xf64>) -> tensor<3x20xf64>
  %y = nn.reduce_sum %rows {dimensions = array<i64: 1>} : (tensor<3x20xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_same_everywhere(%x: tensor<f64>) -> tensor<f64> attributes {
    check.inputs = [dense<1.5> : tensor<f64>], check.results = [dense<30.0> : tensor<f64>]} {
  %row = nn.broadcast %x {dimensions = array<i64>} : (tensor<f64>) -> tensor<20xf64>
  %y = nn.reduce_sum %row {dimensions = array<i64: 0>} : (tensor<20xf64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
func.func @numbers_same_in_every_row(%x: tensor<40xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<0.5> : tensor<40xf64>], check.results = [dense<8000.0> : tensor<f64>]} {
  %rows = nn.broadcast %x {dimensions = array<i64: 0>} : (tensor<40xf64>) -> tensor<40x400xf64>
  %y = nn.reduce_sum %rows {dimensions = array<i64: 0, 1>} : (tensor<40x400xf64>) -> tensor<f64>
  return %y : tensor<f64>
}
