// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s

// custom-c1
func.func @custom_c1_numbers(%x: tensor<2xf32>) {
  // expected-error@+1 {{expects integers and floats as numbers, found ["a"]}}
  %0 = nn.custom %x {function = "::f", library = "operators/f/f.h", numbers = ["a"], flops = 1.0 : f64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// custom-c1
func.func @custom_c1_backward(%x: tensor<2xf32>) {
  // expected-error@+1 {{has no such backward function}}
  %0 = nn.custom %x {function = "::f", library = "operators/f/f.h", numbers = [], flops = 1.0 : f64,
      backward = [{function = "::g", numbers = [], flops = 1.0 : f64, inputs = array<i64: 3>, gradients = array<i64: 0>} ]}
      : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Only what somebody needs is called, with the gradients of its results: zeros where a result does not reach the loss.
// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK: %[[DY:.*]] = nn.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<3xf32>
// CHECK: %[[OUT:.*]]:2 = nn.custom %arg0, %arg1
// CHECK: = nn.custom %arg0, %[[OUT]]#0, %[[DY]], %[[ZERO]] {{{.*}}function = "::gx"
// CHECK-NOT: function = "::gk"
func.func @model(%x: tensor<2xf32> {train.role = #train.parameter<"x">}, %k: tensor<2xf32> {train.role = #train.input<"k">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y, %z = nn.custom %x, %k {function = "::f", library = "operators/f/f.h", numbers = [2, 1.5], flops = 1.0 : f64,
      backward = [{function = "::gx", numbers = [2], flops = 1.0 : f64, inputs = array<i64: 0, 2, 4, 5>, gradients = array<i64: 0>},
                  {function = "::gk", numbers = [2], flops = 1.0 : f64, inputs = array<i64: 1, 4>, gradients = array<i64: 1>} ]}
      : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
