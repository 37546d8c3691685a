// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | not %trainc-opt -differentiate 2>&1 | %FileCheck %s
// RUN: %section KERNEL %s | not %trainc-opt -fuse -lower-to-kernels 2>&1 | %FileCheck %s --check-prefix=KERNELS
//
// tests/passes/derive_evaluate.mlir has it resolved, tests/import/layers/dropout.onnxtxt run.

// training_form-c1
func.func @training_form_c1(%a: tensor<3xf32>, %b: tensor<1xf32>) {
  // expected-error@+1 {{requires the same type for all operands and results}}
  %0 = nn.training_form %a, %b : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  return
}

// -----

// Nothing after derive-evaluate takes one for the other.
// GRADIENT
// CHECK: 'nn.training_form' op is both forms yet: derive-evaluate comes before differentiate
func.func @model(%x: tensor<3xf32> {train.role = #train.parameter<"x">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.neg %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.training_form %0, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// KERNEL
// KERNELS: internal error in lower-to-kernels: pointwise operation 'training_form' has no scalar code
func.func @kernel(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %0 = nn.training_form %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
