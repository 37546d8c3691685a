// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -derive-evaluate | %FileCheck %s --check-prefixes=EVALUATE,BOTH
// RUN: %trainc-opt %s -derive-evaluate=only=true | %FileCheck %s --check-prefixes=EVALUATE,ONLY
// RUN: echo 'module {}' | not %trainc-opt -derive-evaluate 2>&1 | %FileCheck %s --check-prefix=MISSING
//
// @evaluate is the model as its user runs it: outputs and loss, but buffers stay as they are and
// what only they needed goes.
//
// MISSING: derive-evaluate expects a function @model
//
// BOTH: func.func @model
// BOTH: nn.tanh
// ONLY-NOT: func.func @model
// EVALUATE: func.func @evaluate(%arg0: tensor<3xf32> {train.role = #train.parameter<"w">}, %arg1: tensor<3xf32> {train.role = #train.buffer<"mean">})
// EVALUATE-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.output<"y">})
// EVALUATE-NOT: nn.tanh
// EVALUATE: return
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">},
                 %mean: tensor<3xf32> {train.role = #train.buffer<"mean">})
    -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.new_value<"mean">},
        tensor<3xf32> {train.role = #train.output<"y">}) {
  %0 = nn.mul %mean, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.reduce_sum %0 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %2 = nn.tanh %mean : (tensor<3xf32>) -> tensor<3xf32>
  return %1, %2, %0 : tensor<f32>, tensor<3xf32>, tensor<3xf32>
}
