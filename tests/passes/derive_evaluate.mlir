// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section BUFFER %s | %trainc-opt -derive-evaluate | %FileCheck %s --check-prefixes=EVALUATE,BOTH
// RUN: %section BUFFER %s | %trainc-opt -derive-evaluate=only=true | %FileCheck %s --check-prefixes=EVALUATE,ONLY
// RUN: %section FORMS %s | %trainc-opt -derive-evaluate | %FileCheck %s --check-prefixes=FORMS,TRAINING
// RUN: %section FORMS %s | %trainc-opt -derive-evaluate=only=true | %FileCheck %s --check-prefixes=FORMS,ALONE
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

// BUFFER
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">},
                 %mean: tensor<3xf32> {train.role = #train.buffer<"mean">})
    -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.new_value<"mean">},
        tensor<3xf32> {train.role = #train.output<"y">}) {
  %0 = nn.mul %mean, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.reduce_sum %0 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %2 = nn.tanh %mean : (tensor<3xf32>) -> tensor<3xf32>
  return %1, %2, %0 : tensor<f32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// The model keeps the form of training, @evaluate that of inference; what only the other needed goes.
//
// TRAINING: func.func @model
// TRAINING: nn.exp %arg0
// TRAINING-NOT: nn.tanh
// TRAINING-NOT: training_form
// ALONE-NOT: func.func @model
// FORMS: func.func @evaluate
// FORMS-NOT: nn.exp
// FORMS: nn.tanh %arg0
// FORMS-NOT: training_form

// FORMS
func.func @model(%w: tensor<2x3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %training = nn.exp %w : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %inference = nn.tanh %w : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = nn.training_form %training, %inference : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
