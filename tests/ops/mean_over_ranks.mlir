// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %section STEPS %s | not %trainc-opt -form-products '-plan-recompute=pattern=norm' 2>&1 | %FileCheck %s --check-prefix=STEPS
// RUN: %trainc-check-gradient %s

// mean_over_ranks-c1
func.func @mean_over_ranks_c1(%x: tensor<3xi64>) {
  // expected-error@+1 {{must be}}
  %0, %1 = nn.mean_over_ranks %x : (tensor<3xi64>) -> (tensor<3xi64>, tensor<f64>)
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

// Ranks meet once for what is computed: never again in the backward pass.
// STEPS
// STEPS: error: {{.*}}it cannot be recomputed: it acts on more than its tensors
// STEPS: kernel.call"(%0) {{.*}}function = "mean_over_ranks", library = "mean_over_ranks", numbers = [1024], ordered
// STEPS: try: a pattern of fewer nodes
func.func @forward_backward(%x: tensor<1024xf32> {train.role = #train.parameter<"x">})
    -> (tensor<f32> {train.role = #train.loss}, tensor<1024xf32> {train.role = #train.gradient<"x">}) {
  %own = nn.exp %x : (tensor<1024xf32>) -> tensor<1024xf32> loc("norm")
  %mean, %ranks = nn.mean_over_ranks %own : (tensor<1024xf32>) -> (tensor<1024xf32>, tensor<f64>) loc("norm")
  %y = nn.exp %mean : (tensor<1024xf32>) -> tensor<1024xf32> loc("norm")
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0>} : (tensor<1024xf32>) -> tensor<f32> loc("loss")
  %dy, %again = nn.mean_over_ranks %x : (tensor<1024xf32>) -> (tensor<1024xf32>, tensor<f64>) loc("gradient"("norm"))
  %dmean = nn.mul %dy, %y : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32> loc("gradient"("norm"))
  %dx = nn.mul %dmean, %mean : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32> loc("gradient"("norm"))
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
