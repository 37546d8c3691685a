// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// cross_entropy-c1
func.func @cross_entropy_c1(%x: tensor<2x5xf32>, %l: tensor<3xi64>) {
  // expected-error@+2 {{labels have the shape of logits without the last dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.cross_entropy %x, %l {ignore_index = -100 : i64} : (tensor<2x5xf32>, tensor<3xi64>) -> tensor<f32>
  return
}

// -----

// cross_entropy-c1
func.func @scalar(%x: tensor<f32>, %l: tensor<i64>) {
  // expected-error@+2 {{labels have the shape of logits without the last dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.cross_entropy %x, %l {ignore_index = -100 : i64} : (tensor<f32>, tensor<i64>) -> tensor<f32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<0.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<-100> : tensor<2xi64>
// CHECK-NEXT: %[[CROSS_ENTROPY:.*]] = nn.cross_entropy %arg0, %arg1 {ignore_index = -100 : i64}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[CROSS_ENTROPY]], %arg2
// CHECK-NEXT: %[[REDUCE_MAX:.*]] = nn.reduce_max %arg0 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %[[REDUCE_MAX]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %arg0, %[[BROADCAST]]
// CHECK-NEXT: %[[EXP:.*]] = nn.exp %[[SUB]]
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[EXP]] {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[IOTA:.*]] = nn.iota  {dimension = 1 : i64}
// CHECK-NEXT: %[[BROADCAST2:.*]] = nn.broadcast %arg1 {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[EQUAL:.*]] = nn.equal %[[IOTA]], %[[BROADCAST2]]
// CHECK-NEXT: %[[EQUAL2:.*]] = nn.equal %arg1, %[[CONSTANT2]]
// CHECK-NEXT: %[[NOT:.*]] = nn.not %[[EQUAL2]]
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %[[NOT]]
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %[[CAST]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[DIV:.*]] = nn.div %arg2, %[[REDUCE_SUM2]]
// CHECK-NEXT: %[[BROADCAST3:.*]] = nn.broadcast %[[DIV]] {dimensions = array<i64>}
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[NOT]], %[[BROADCAST3]], %[[CONSTANT]]
// CHECK-NEXT: %[[INVERSE:.*]] = nn.div %[[ONE]], %[[REDUCE_SUM]]
// CHECK-NEXT: %[[BROADCAST4:.*]] = nn.broadcast %[[INVERSE]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[DIV2:.*]] = nn.mul %[[EXP]], %[[BROADCAST4]]
// CHECK-NEXT: %[[CAST2:.*]] = nn.cast %[[EQUAL]]
// CHECK-NEXT: %[[SUB2:.*]] = nn.sub %[[DIV2]], %[[CAST2]]
// CHECK-NEXT: %[[BROADCAST5:.*]] = nn.broadcast %[[SELECT]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[SUB2]], %[[BROADCAST5]]
// CHECK-NEXT: return %[[MUL]], %[[MUL2]]
func.func @model(%x: tensor<2x5xf32> {train.role = #train.parameter<"x">},
                 %labels: tensor<2xi64> {train.role = #train.label<"labels">},
                 %weight: tensor<f32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.cross_entropy %x, %labels {ignore_index = -100 : i64} : (tensor<2x5xf32>, tensor<2xi64>) -> tensor<f32>
  %weighted = nn.mul %y, %weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64>} : (tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<3x5xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<2.713818540105048> : tensor<f64>]} {
  %l = nn.constant dense<[4, 0, 2]> : tensor<3xi64>
  %y = nn.cross_entropy %x, %l {ignore_index = -100 : i64} : (tensor<3x5xf64>, tensor<3xi64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
// Ignored rows count neither in the sum nor in the mean.
func.func @numbers_ignored(%x: tensor<2x3x3xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55]], [[-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165], [1.721, -1.27, -1.033]]]> : tensor<2x3x3xf64>],
    check.results = [dense<3.2430599241377966> : tensor<f64>]} {
  %l = nn.constant dense<[[2, -100, 0], [-100, 1, 1]]> : tensor<2x3xi64>
  %y = nn.cross_entropy %x, %l {ignore_index = -100 : i64} : (tensor<2x3x3xf64>, tensor<2x3xi64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
func.func @numbers_other_ignored_class(%x: tensor<3x3xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55]]> : tensor<3x3xf64>],
    check.results = [dense<1.972442637428385> : tensor<f64>]} {
  %l = nn.constant dense<[2, 0, 1]> : tensor<3xi64>
  %y = nn.cross_entropy %x, %l {ignore_index = 0 : i64} : (tensor<3x3xf64>, tensor<3xi64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
func.func @numbers_one_row(%x: tensor<7xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891]> : tensor<7xf64>],
    check.results = [dense<1.4585945831533125> : tensor<f64>]} {
  %l = nn.constant dense<3> : tensor<i64>
  %y = nn.cross_entropy %x, %l {ignore_index = -100 : i64} : (tensor<7xf64>, tensor<i64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
func.func @numbers_large(%x: tensor<2x3xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[1000.0, 999.0, 998.5], [-1000.5, -1001.0, -1002.0]]> : tensor<2x3xf64>],
    check.results = [dense<1.7842496947223365> : tensor<f64>]} {
  %l = nn.constant dense<[1, 2]> : tensor<2xi64>
  %y = nn.cross_entropy %x, %l {ignore_index = -100 : i64} : (tensor<2x3xf64>, tensor<2xi64>) -> tensor<f64>
  return %y : tensor<f64>
}

// -----

// NUMBERS
// Without ignore_index every row counts.
func.func @numbers_every_row(%x: tensor<2x3xf64>) -> tensor<f64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572]]> : tensor<2x3xf64>],
    check.results = [dense<2.2258642343382635> : tensor<f64>]} {
  %l = nn.constant dense<[2, 0]> : tensor<2xi64>
  %y = nn.cross_entropy %x, %l : (tensor<2x3xf64>, tensor<2xi64>) -> tensor<f64>
  return %y : tensor<f64>
}
