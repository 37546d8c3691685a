// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// reduce_min-c1
func.func @reduce_min_c1(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{dimensions are increasing and within rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.reduce_min %x {dimensions = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

// reduce_min-c1
func.func @decreasing(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{dimensions are increasing and within rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.reduce_min %x {dimensions = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[REDUCE_MIN:.*]] = nn.reduce_min %arg0 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[REDUCE_MIN]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %[[REDUCE_MIN]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[EQUAL:.*]] = nn.equal %arg0, %[[BROADCAST]]
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %[[EQUAL]]
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %[[CAST]] {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[DIV:.*]] = nn.div %arg1, %[[REDUCE_SUM2]]
// CHECK-NEXT: %[[BROADCAST2:.*]] = nn.broadcast %[[DIV]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[EQUAL]], %[[BROADCAST2]], %[[CONSTANT]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SELECT]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.reduce_min %x {dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  %weighted = nn.mul %y, %weight : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[REDUCE_MIN:.*]] = nn.reduce_min %arg0 {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[REDUCE_MIN]], %arg1
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %[[REDUCE_MIN]] {dimensions = array<i64>}
// CHECK-NEXT: %[[EQUAL:.*]] = nn.equal %arg0, %[[BROADCAST]]
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %[[EQUAL]]
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[CAST]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[DIV:.*]] = nn.div %arg1, %[[REDUCE_SUM]]
// CHECK-NEXT: %[[BROADCAST2:.*]] = nn.broadcast %[[DIV]] {dimensions = array<i64>}
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[EQUAL]], %[[BROADCAST2]], %[[CONSTANT]]
// CHECK-NEXT: return %[[MUL]], %[[SELECT]]
// Over all dimensions; ties share.
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<f32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.reduce_min %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %weighted = nn.mul %y, %weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64>} : (tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_rows(%x: tensor<3x5xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[-1.676, -1.898, -1.705]> : tensor<3xf64>]} {
  %y = nn.reduce_min %x {dimensions = array<i64: 1>} : (tensor<3x5xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_columns(%x: tensor<5x3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165]]> : tensor<5x3xf64>],
    check.results = [dense<[-1.898, -1.705, -1.676]> : tensor<3xf64>]} {
  %y = nn.reduce_min %x {dimensions = array<i64: 0>} : (tensor<5x3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_all(%x: tensor<3x5xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<-1.898> : tensor<f64>]} {
  %y = nn.reduce_min %x {dimensions = array<i64: 0, 1>} : (tensor<3x5xf64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
func.func @numbers_outer_and_inner(%x: tensor<2x3x5xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]], [[1.721, -1.27, -1.033, 1.92, 0.944], [-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]> : tensor<2x3x5xf64>],
    check.results = [dense<[-1.676, -1.898, -1.705]> : tensor<3xf64>]} {
  %y = nn.reduce_min %x {dimensions = array<i64: 0, 2>} : (tensor<2x3x5xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_middle(%x: tensor<2x3x5xf64>) -> tensor<2x5xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]], [[1.721, -1.27, -1.033, 1.92, 0.944], [-1.734, -0.046, 2.22, -0.029, -1.693], [1.008, 1.998, -0.935, -1.147, 1.863]]]> : tensor<2x3x5xf64>],
    check.results = [dense<[[-1.572, -0.891, -1.676, -1.705, -1.898], [-1.734, -1.27, -1.033, -1.147, -1.693]]> : tensor<2x5xf64>]} {
  %y = nn.reduce_min %x {dimensions = array<i64: 1>} : (tensor<2x3x5xf64>) -> tensor<2x5xf64>
  return %y : tensor<2x5xf64>
}

// -----

// NUMBERS
func.func @numbers_long(%x: tensor<3x37xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891, 1.937, 0.55, -1.898, 0.142, 2.087, -0.432, -1.705, 1.165, 1.721, -1.27, -1.033, 1.92, 0.944, -1.734, -0.046, 2.22, -0.029, -1.693, 1.008, 1.998, -0.935, -1.147, 1.863, 1.322, -1.527, -0.229, 2.308, 0.379, -1.638, 0.833], [2.236, -0.574, -1.23, 1.772, 1.677, -1.278, -0.399, 2.352, 0.786, -1.538, 0.649, 2.432, -0.192, -1.277, 1.65, 2.003, -0.992, -0.551, 2.353, 1.186, -1.394, 0.46, 2.585, 0.206, -1.284, 1.502, 2.296, -0.671, -0.679, 2.314, 1.572, -1.206, 0.274, 2.694, 0.613, -1.248, 1.335], [2.553, -0.322, -0.776, 2.238, 1.938, -0.976, 0.097, 2.757, 1.021, -1.169, 1.154, 2.768, 0.052, -0.84, 2.129, 2.278, -0.707, -0.064, 2.778, 1.426, -1.045, 0.966, 2.941, 0.444, -0.866, 1.992, 2.587, -0.401, -0.204, 2.756, 1.819, -0.877, 0.778, 3.07, 0.847, -0.85, 1.833]]> : tensor<3x37xf64>],
    check.results = [dense<[-1.898, -1.538, -1.169]> : tensor<3xf64>]} {
  %y = nn.reduce_min %x {dimensions = array<i64: 1>} : (tensor<3x37xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676]]> : tensor<1x3xf64>],
    check.results = [dense<[1.911, -0.822, -1.676]> : tensor<3xf64>]} {
  %y = nn.reduce_min %x {dimensions = array<i64: 0>} : (tensor<1x3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// -----

// NUMBERS
// Indices: a loop's own beside a literal.
func.func @numbers_indices(%x: tensor<3x5xf64>) -> (tensor<3xi64>, tensor<5xi64>, tensor<i64>) attributes {
    check.inputs = [dense<[[0.5, 2.0, -1.0, 3.0, 0.0], [0.5, 0.25, 0.0, -1.0, -2.0], [1.5, 1.25, 7.0, 3.0, 2.0]]> : tensor<3x5xf64>],
    check.results = [dense<[1, 4, 0]> : tensor<3xi64>, dense<[2, 0, 2, 0, 2]> : tensor<5xi64>, dense<0> : tensor<i64>]} {
  %one = nn.constant dense<1.0> : tensor<3x5xf64>
  %other = nn.constant dense<4> : tensor<3x5xi64>
  %hit = nn.greater %x, %one : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xi1>
  %columns = nn.iota {dimension = 1 : i64} : () -> tensor<3x5xi64>
  %rows = nn.iota {dimension = 0 : i64} : () -> tensor<3x5xi64>
  %column = nn.select %hit, %columns, %other : (tensor<3x5xi1>, tensor<3x5xi64>, tensor<3x5xi64>) -> tensor<3x5xi64>
  %row = nn.select %hit, %rows, %other : (tensor<3x5xi1>, tensor<3x5xi64>, tensor<3x5xi64>) -> tensor<3x5xi64>
  %a = nn.reduce_min %column {dimensions = array<i64: 1>} : (tensor<3x5xi64>) -> tensor<3xi64>
  %b = nn.reduce_min %row {dimensions = array<i64: 0>} : (tensor<3x5xi64>) -> tensor<5xi64>
  %c = nn.reduce_min %column {dimensions = array<i64: 0, 1>} : (tensor<3x5xi64>) -> tensor<i64>
  return %a, %b, %c : tensor<3xi64>, tensor<5xi64>, tensor<i64>
}
