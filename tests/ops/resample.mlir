// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// resample-c1
func.func @resample_c1(%x: tensor<3xf32>) {
  // expected-error@+2 {{dimension 1 is out of range for rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.resample %x {dimension = 1 : i64, taps = 1 : i64, indices = array<i64: 0>, weights = array<f64: 1.0>} : (tensor<3xf32>) -> tensor<1xf32>
  return
}

// -----

// resample-c2
func.func @resample_c2(%x: tensor<3xf32>) {
  // expected-error@+2 {{has 3 indices and 3 weights for 2 taps of each element}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.resample %x {dimension = 0 : i64, taps = 2 : i64, indices = array<i64: 0, 1, 2>, weights = array<f64: 1.0, 1.0, 1.0>} : (tensor<3xf32>) -> tensor<1xf32>
  return
}

// -----

// resample-c3
func.func @resample_c3(%x: tensor<3xf32>) {
  // expected-error@+2 {{index 3 is out of range for size 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.resample %x {dimension = 0 : i64, taps = 1 : i64, indices = array<i64: 3>, weights = array<f64: 1.0>} : (tensor<3xf32>) -> tensor<1xf32>
  return
}

// -----

// GRADIENT
// Element 1 of x is part of three results, element 2 of none.
// CHECK-LABEL: func.func @forward_backward
// CHECK: nn.resample %arg1 {dimension = 0 : i64, indices = array<i64: 0, 0, 0, 0, 1, 2, 0, 0, 0>, taps = 3 : i64, weights = array<f64: 5.000000e-01, 0.000000e+00, 0.000000e+00, 5.000000e-01, 1.000000e+00, -2.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00>}
func.func @model(%x: tensor<3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.resample %x {dimension = 0 : i64, taps = 2 : i64, indices = array<i64: 0, 1, 1, 0, 1, 0>, weights = array<f64: 0.5, 0.5, 1.0, 0.0, -2.0, 0.0>} : (tensor<3xf32>) -> tensor<3xf32>
  %weighted = nn.mul %y, %weight : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_columns(%x: tensor<2x3xf64>) -> tensor<2x4xf64> attributes {
    check.inputs = [dense<[[1.0, 2.0, 4.0], [-1.0, 0.5, 3.0]]> : tensor<2x3xf64>],
    check.results = [dense<[[1.0, 1.5, 3.0, -4.0], [-1.0, -0.25, 1.75, -3.0]]> : tensor<2x4xf64>]} {
  %y = nn.resample %x {dimension = 1 : i64, taps = 2 : i64, indices = array<i64: 0, 0, 0, 1, 1, 2, 2, 0>, weights = array<f64: 1.0, 0.0, 0.5, 0.5, 0.5, 0.5, -1.0, 0.0>} : (tensor<2x3xf64>) -> tensor<2x4xf64>
  return %y : tensor<2x4xf64>
}

// -----

// NUMBERS
// Nine taps are a product; an index may come twice.
func.func @numbers_many(%x: tensor<2x2xf64>) -> tensor<1x2xf64> attributes {
    check.inputs = [dense<[[1.0, 2.0], [10.0, -4.0]]> : tensor<2x2xf64>],
    check.results = [dense<[[42.0, -12.0]]> : tensor<1x2xf64>]} {
  %y = nn.resample %x {dimension = 0 : i64, taps = 9 : i64, indices = array<i64: 0, 1, 0, 1, 0, 1, 0, 1, 0>, weights = array<f64: 1.0, 1.0, -2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0>} : (tensor<2x2xf64>) -> tensor<1x2xf64>
  return %y : tensor<1x2xf64>
}
