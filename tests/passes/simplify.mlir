// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -simplify | %FileCheck %s

// Neutral elements and constants.
// CHECK-LABEL: func.func @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %ones = nn.broadcast %one {dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %0 = nn.add %zero, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.mul %0, %ones : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.sub %1, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.div %2, %ones : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.less %zero, %ones : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %5 = nn.select %4, %3, %zero : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = nn.neg %5 : (tensor<4xf32>) -> tensor<4xf32>
  %7 = nn.neg %6 : (tensor<4xf32>) -> tensor<4xf32>
  return %7 : tensor<4xf32>
}

// Zero times x stays: x may be infinite.
// CHECK-LABEL: func.func @zero_times
// CHECK: nn.mul
func.func @zero_times(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %0 = nn.mul %zero, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @movement
// CHECK-NEXT: return %arg0
func.func @movement(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  %2 = nn.reshape %1 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %3 = nn.reshape %2 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %4 = nn.slice %3 {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = nn.broadcast %4 {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %6 = nn.cast %5 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %6 : tensor<2x3x4xf32>
}

// A whole reversed by its slice is not an identity.
// CHECK-LABEL: func.func @backwards
// CHECK: nn.slice
func.func @backwards(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = nn.slice %x {starts = array<i64: 2>, sizes = array<i64: 3>, strides = array<i64: -1>} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @broadcasts
// CHECK-NEXT: %[[Y:.*]] = nn.broadcast %arg0 {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3x4x5xf32>
// CHECK-NEXT: return %[[Y]]
func.func @broadcasts(%x: tensor<2x3xf32>) -> tensor<2x3x4x5xf32> {
  %0 = nn.reshape %x : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %1 = nn.broadcast %0 {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %2 = nn.broadcast %1 {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x4x5xf32>
  return %2 : tensor<2x3x4x5xf32>
}

// CHECK-LABEL: func.func @transposes_into_matmul
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %arg0, %arg1 {transpose_b}
// CHECK-NEXT: return %[[Y]]
func.func @transposes_into_matmul(%a: tensor<2x3x4xf32>, %b: tensor<2x5x4xf32>) -> tensor<2x3x5xf32> {
  %0 = nn.transpose %a {permutation = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = nn.transpose %b {permutation = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
  %2 = nn.matmul %0, %1 {transpose_a} : (tensor<2x4x3xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %2 : tensor<2x3x5xf32>
}

// The root of -0 is -0 and that of -infinity is not a number; the powers are 0 and infinity.
// CHECK-LABEL: func.func @powers
// CHECK-DAG: %[[ZERO:.*]] = nn.constant dense<0.000000e+00>
// CHECK-DAG: %[[INFINITY:.*]] = nn.constant dense<0x7F800000>
// CHECK-DAG: %[[MINUS_INFINITY:.*]] = nn.constant dense<0xFF800000>
// CHECK: %[[SQUARE:.*]] = nn.mul %arg0, %arg0
// CHECK-NEXT: %[[NAUGHT:.*]] = nn.equal %[[SQUARE]], %[[ZERO]]
// CHECK-NEXT: %[[POSITIVE:.*]] = nn.select %[[NAUGHT]], %[[ZERO]], %[[SQUARE]]
// CHECK-NEXT: %[[LEAST:.*]] = nn.equal %[[POSITIVE]], %[[MINUS_INFINITY]]
// CHECK-NEXT: %[[OF:.*]] = nn.select %[[LEAST]], %[[INFINITY]], %[[POSITIVE]]
// CHECK-NEXT: %[[ROOT:.*]] = nn.sqrt %[[OF]]
// CHECK-NEXT: %[[RECIPROCAL:.*]] = nn.reciprocal %[[ROOT]]
// CHECK-NEXT: return %[[RECIPROCAL]]
func.func @powers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = nn.constant dense<2.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %minus = nn.constant dense<-1.0> : tensor<4xf32>
  %0 = nn.pow %x, %two : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.pow %0, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.pow %1, %minus : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A scatter into zeros at the end of a chain of sums adds into the rest of it.
// CHECK-LABEL: func.func @scatters
// CHECK: %[[SUM:.*]] = nn.add %arg0, %arg1
// CHECK-NEXT: %[[TABLE:.*]] = nn.scatter_add %[[SUM]], %arg2, %arg3
// CHECK-NEXT: return %[[TABLE]]
func.func @scatters(%a: tensor<5x2xf32>, %b: tensor<5x2xf32>, %i: tensor<3xi64>,
                    %u: tensor<3x2xf32>) -> tensor<5x2xf32> {
  %zero = nn.constant dense<0.0> : tensor<5x2xf32>
  %0 = nn.scatter_add %zero, %i, %u : (tensor<5x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<5x2xf32>
  %1 = nn.add %a, %0 : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  %2 = nn.add %1, %b : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  return %2 : tensor<5x2xf32>
}

// Sums over sizes of 1 and equal operations.
// CHECK-LABEL: func.func @merged
// CHECK-NEXT: %[[ROW:.*]] = nn.reshape %arg0
// CHECK-NEXT: %[[EXP:.*]] = nn.exp %[[ROW]]
// CHECK-NEXT: %[[PRODUCT:.*]] = nn.mul %[[EXP]], %[[EXP]]
// CHECK-NEXT: return %[[PRODUCT]]
func.func @merged(%x: tensor<4x1xf32>) -> tensor<4xf32> {
  %0 = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<4x1xf32>) -> tensor<4xf32>
  %1 = nn.reduce_max %x {dimensions = array<i64: 1>} : (tensor<4x1xf32>) -> tensor<4xf32>
  %2 = nn.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.mul %2, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}
