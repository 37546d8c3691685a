// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section BUFFER %s | %trainc-opt -derive-evaluate | %FileCheck %s --check-prefixes=EVALUATE,BOTH
// RUN: %section BUFFER %s | %trainc-opt -derive-evaluate=only=true | %FileCheck %s --check-prefixes=EVALUATE,ONLY
// RUN: %section BUFFER %s | %trainc-opt -derive-evaluate=outputs=false | %FileCheck %s --check-prefix=LOSS
// RUN: %section FORMS %s | %trainc-opt -derive-evaluate | %FileCheck %s --check-prefixes=FORMS,TRAINING
// RUN: %section FORMS %s | %trainc-opt -derive-evaluate=only=true | %FileCheck %s --check-prefixes=FORMS,ALONE
// RUN: %section NONE %s | %trainc-opt -derive-evaluate | %FileCheck %s --check-prefix=NONE
// RUN: %section OWN %s | %trainc-opt -derive-evaluate | %FileCheck %s --check-prefix=OWN
// RUN: %section FORMS %s | %trainc-opt -derive-evaluate -differentiate -form-buckets -attach-optimizer -decompose -form-products -fuse -lower-to-kernels -schedule-kernels -order-operations -plan-memory | %FileCheck %s --check-prefix=PLAN
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
// LOSS: func.func @model({{.*}}#train.output<"y">
// LOSS: func.func @evaluate({{.*}} -> (tensor<f32> {train.role = #train.loss}) {
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

// The model keeps the form of training, its random numbers follow from a key of its own; @evaluate
// has the form of inference and always the same numbers.
//
// TRAINING: func.func @model(%arg0: tensor<2x3xf32> {train.role = #train.parameter<"w">}, %arg1: tensor<i64> {train.role = #train.random_key})
// TRAINING-NOT: training_form
// TRAINING: %[[KEYS:.*]] = nn.broadcast %arg1 {dimensions = array<i64>} : (tensor<i64>) -> tensor<2x3xi64>
// TRAINING: nn.random_bits %[[KEYS]] {bits = 30 : i64, stream = 0 : i64}
// TRAINING-NOT: nn.tanh
// TRAINING: nn.random_bits %{{.*}} {bits = 24 : i64, stream = 2 : i64}
// ALONE-NOT: func.func @model
// FORMS: func.func @evaluate(%arg0: tensor<2x3xf32> {train.role = #train.parameter<"w">})
// FORMS-NOT: training_form
// FORMS: nn.tanh %arg0
// FORMS-NOT: bits = 30
// FORMS: nn.random_bits {bits = 24 : i64, stream = 2 : i64} : () -> tensor<2x3xi64>
//
// The key is pinned in the workspace, where the trainer writes it.
// PLAN: func.func @forward_backward({{.*}}tensor<i64> {kernel.place = #kernel.place<workspace, {{[0-9]+}}>, train.role = #train.random_key}

// FORMS
func.func @model(%w: tensor<2x3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %bits = nn.random_bits {stream = 0 : i64, bits = 30 : i64} : () -> tensor<2x3xi64>
  %factor = nn.cast %bits : (tensor<2x3xi64>) -> tensor<2x3xf32>
  %training = nn.mul %w, %factor : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %inference = nn.tanh %w : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = nn.training_form %training, %inference : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %noise_bits = nn.random_bits {stream = 2 : i64, bits = 24 : i64} : () -> tensor<2x3xi64>
  %noise = nn.cast %noise_bits : (tensor<2x3xi64>) -> tensor<2x3xf32>
  %z = nn.add %y, %noise : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %z {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What only inference draws needs no key.
// NONE: func.func @model(%arg0: tensor<3xf32> {train.role = #train.parameter<"w">}) ->
// NONE-NOT: nn.random_bits
// NONE: func.func @evaluate
// NONE: nn.random_bits

// NONE
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<3xf32> {train.role = #train.output<"y">}) {
  %bits = nn.random_bits {stream = 0 : i64, bits = 30 : i64} : () -> tensor<3xi64>
  %random = nn.cast %bits : (tensor<3xi64>) -> tensor<3xf32>
  %y = nn.training_form %w, %random : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// Numbers under keys of the model's own need none.
// OWN: func.func @model(%arg0: tensor<3xf32> {train.role = #train.parameter<"w">}) ->
// OWN: %[[KEYS:.*]] = nn.constant dense<[4, 5, 6]>
// OWN: nn.random_bits %[[KEYS]]

// OWN
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<3xf32> {train.role = #train.output<"y">}) {
  %keys = nn.constant dense<[4, 5, 6]> : tensor<3xi64>
  %bits = nn.random_bits %keys {stream = 0 : i64, bits = 30 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %random = nn.cast %bits : (tensor<3xi64>) -> tensor<3xf32>
  %y = nn.add %w, %random : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
