// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %trainc-check-gradient %s

// segment_norms-c1
func.func @segment_norms_c1(%x: tensor<8xf32>, %segments: tensor<4xi64>) {
  // expected-error@+2 {{takes a flat tensor and pairs of i64}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.segment_norms %x, %segments : (tensor<8xf32>, tensor<4xi64>) -> tensor<2xf64>
  return
}

// -----

// The operation has no gradient: operands of the cases are integers, which have none.
// Elements between segments do not count, a segment may be empty or be one element.
// NUMBERS
func.func @numbers_gaps(%i: tensor<9xi64>) -> tensor<4xf64> attributes {
    check.inputs = [dense<[3, 4, 100, 5, 12, 100, -7, 100, 100]> : tensor<9xi64>],
    check.results = [dense<[5.0, 13.0, 7.0, 0.0]> : tensor<4xf64>]} {
  %x = nn.cast %i : (tensor<9xi64>) -> tensor<9xf64>
  %segments = nn.constant dense<[[0, 2], [3, 5], [6, 7], [8, 8]]> : tensor<4x2xi64>
  %y = nn.segment_norms %x, %segments : (tensor<9xf64>, tensor<4x2xi64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// More elements than pieces, and not a multiple of them; single precision.
// NUMBERS
func.func @numbers_pieces() -> tensor<2xf64> attributes {
    check.results = [dense<[78.74642849044012, 18216.1623016485]> : tensor<2xf64>]} {
  %i = nn.iota {dimension = 0 : i64} : () -> tensor<1000xi64>
  %x = nn.cast %i : (tensor<1000xi64>) -> tensor<1000xf32>
  %segments = nn.constant dense<[[1, 27], [28, 999]]> : tensor<2x2xi64>
  %y = nn.segment_norms %x, %segments : (tensor<1000xf32>, tensor<2x2xi64>) -> tensor<2xf64>
  return %y : tensor<2xf64>
}
