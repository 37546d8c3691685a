// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %section STEPS %s | %trainc-opt -form-products -plan-recompute=level=full | %FileCheck %s --check-prefix=STEPS
// RUN: %trainc-check-gradient %s

// mean_over_ranks-c1
func.func @mean_over_ranks_c1(%x: tensor<3xf16>) {
  // expected-error@+2 {{takes a tensor of f32 or f64}}
  // expected-error@+1 {{failed to infer returned types}}
  %0, %1 = nn.mean_over_ranks %x : (tensor<3xf16>) -> (tensor<3xf16>, tensor<f64>)
  return
}

// -----

// A loss is a mean over ranks too.
// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK: nn.mean_over_ranks %arg0
// CHECK: %[[DX:.*]], %{{.*}} = nn.mean_over_ranks %arg1
// CHECK: return %{{.*}}, %[[DX]]
func.func @model(%x: tensor<3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %mean, %ranks = nn.mean_over_ranks %x : (tensor<3xf32>) -> (tensor<3xf32>, tensor<f64>)
  %weighted = nn.mul %mean, %weight : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Ranks meet in one order, and never again for what can be computed: what the mean is used for is repeated, it is not.
// STEPS
// STEPS-LABEL: func.func @forward_backward
// STEPS-COUNT-2: kernel.call "mean_over_ranks" of "mean_over_ranks" [1024] {{.*}}ordered
// STEPS-NOT: mean_over_ranks
// STEPS: return
func.func @forward_backward(%x: tensor<1024xf32> {train.role = #train.parameter<"x">})
    -> (tensor<f32> {train.role = #train.loss}, tensor<1024xf32> {train.role = #train.gradient<"x">}) {
  %own = nn.exp %x : (tensor<1024xf32>) -> tensor<1024xf32>
  %mean, %ranks = nn.mean_over_ranks %own : (tensor<1024xf32>) -> (tensor<1024xf32>, tensor<f64>)
  %y = nn.exp %mean : (tensor<1024xf32>) -> tensor<1024xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0>} : (tensor<1024xf32>) -> tensor<f32>
  %dy, %again = nn.mean_over_ranks %y : (tensor<1024xf32>) -> (tensor<1024xf32>, tensor<f64>)
  %dx = nn.mul %dy, %mean : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %loss, %dx : tensor<f32>, tensor<1024xf32>
}

// -----

// Of a program that is alone.
// NUMBERS
func.func @numbers_alone(%x: tensor<2x3xf64>) -> (tensor<2x3xf64>, tensor<f64>) attributes {
    check.inputs = [dense<[[0.25, -1.5, 3.0], [1.0e-3, 7.0, -2.0]]> : tensor<2x3xf64>],
    check.results = [dense<[[0.25, -1.5, 3.0], [1.0e-3, 7.0, -2.0]]> : tensor<2x3xf64>, dense<1.0> : tensor<f64>]} {
  %mean, %ranks = nn.mean_over_ranks %x : (tensor<2x3xf64>) -> (tensor<2x3xf64>, tensor<f64>)
  return %mean, %ranks : tensor<2x3xf64>, tensor<f64>
}
