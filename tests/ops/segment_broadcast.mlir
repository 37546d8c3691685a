// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %trainc-check-gradient %s

// segment_broadcast-c1
func.func @segment_broadcast_c1(%values: tensor<3xf32>, %segments: tensor<2x2xi64>) {
  // expected-error@+2 {{takes one value for each pair of i64}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.segment_broadcast %values, %segments {elements = 8 : i64}
      : (tensor<3xf32>, tensor<2x2xi64>) -> tensor<8xf32>
  return
}

// -----

// segment_broadcast-c2
func.func @segment_broadcast_c2(%values: tensor<2xf32>, %segments: tensor<2x2xi64>) {
  // expected-error@+2 {{elements is positive, found 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.segment_broadcast %values, %segments {elements = 0 : i64}
      : (tensor<2xf32>, tensor<2x2xi64>) -> tensor<0xf32>
  return
}

// -----

// The operation has no gradient: operands of the cases are integers, which have none.
// NUMBERS
func.func @numbers_gaps(%i: tensor<4xi64>) -> tensor<9xf64> attributes {
    check.inputs = [dense<[3, -5, 6, 8]> : tensor<4xi64>],
    check.results = [dense<[0.0, 3.0, 3.0, -5.0, 0.0, 8.0, 8.0, 0.0, 0.0]> : tensor<9xf64>]} {
  %values = nn.cast %i : (tensor<4xi64>) -> tensor<4xf64>
  %segments = nn.constant dense<[[1, 3], [3, 4], [5, 5], [5, 7]]> : tensor<4x2xi64>
  %y = nn.segment_broadcast %values, %segments {elements = 9 : i64}
      : (tensor<4xf64>, tensor<4x2xi64>) -> tensor<9xf64>
  return %y : tensor<9xf64>
}

// -----

// More elements than a thread takes at a time; single precision.
// NUMBERS
func.func @numbers_blocks(%i: tensor<2xi64>) -> tensor<f32> attributes {
    check.inputs = [dense<[3, 1]> : tensor<2xi64>],
    check.results = [dense<75029.0> : tensor<f32>]} {
  %values = nn.cast %i : (tensor<2xi64>) -> tensor<2xf32>
  %segments = nn.constant dense<[[1, 20001], [25000, 40029]]> : tensor<2x2xi64>
  %y = nn.segment_broadcast %values, %segments {elements = 50000 : i64}
      : (tensor<2xf32>, tensor<2x2xi64>) -> tensor<50000xf32>
  %sum = nn.reduce_sum %y {dimensions = array<i64: 0>} : (tensor<50000xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
