// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section SUMS %s | %trainc-opt -differentiate | %FileCheck %s --check-prefix=SUMS
// RUN: %section PARTS %s | %trainc-opt -differentiate | %FileCheck %s --check-prefix=PARTS
// RUN: %section NEEDED %s | %trainc-opt -differentiate | %FileCheck %s --check-prefix=NEEDED
// RUN: %section NAMES %s | %trainc-opt -differentiate -mlir-print-debuginfo -mlir-print-local-scope | %FileCheck %s --check-prefix=NAMES
// RUN: %section TIED %s | %trainc-opt -differentiate | %FileCheck %s --check-prefix=TIED
// RUN: %section SCALED %s | %trainc-opt -differentiate | %FileCheck %s --check-prefix=SCALED
// RUN: %section SCALED %s | %trainc-opt -differentiate -form-buckets -attach-optimizer=kind=sgd | %FileCheck %s --check-prefix=UNSCALED
// RUN: %section BUFFER %s | %trainc-opt -differentiate | %FileCheck %s --check-prefix=BUFFER
// RUN: %section FROZEN %s | %trainc-opt -derive-evaluate -differentiate 2>&1 | %FileCheck %s --check-prefix=FROZEN
// RUN: %section NOTHING %s | not %trainc-opt -differentiate 2>&1 | %FileCheck %s --check-prefix=NOTHING
// RUN: %section ERRORS %s | %trainc-opt -split-input-file -verify-diagnostics -differentiate -allow-unregistered-dialect -o /dev/null

// SCALED
// A value has floats of little range: the gradient of the loss is times what the trainer says; the update undoes it.
// SCALED-LABEL: func.func @forward_backward(
// SCALED-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f64> {train.role = #train.loss_scale})
// SCALED: %[[ROUNDED:.*]] = nn.cast %[[SCALE]] : (tensor<f64>) -> tensor<f32>
// SCALED: nn.broadcast %[[ROUNDED]]
// UNSCALED-LABEL: func.func @update(
// UNSCALED-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f64> {train.role = #train.loss_scale}
// UNSCALED-SAME: %[[MEAN:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"gradient_scale">}
// UNSCALED: %[[FACTOR:.*]] = nn.div %[[MEAN]], %[[SCALE]]
// UNSCALED: nn.mul %{{.*}}, %[[FACTOR]]
// The loss is what it is.
// UNSCALED: nn.mul %{{.*}}, %[[MEAN]]
func.func @model(%w: tensor<4xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  %1 = nn.cast %0 : (tensor<4xf16>) -> tensor<4xf32>
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// PARTS
// Of many parts of a value the gradients stand one after the other, zeros where none was read.
// PARTS-LABEL: func.func @forward_backward(
// PARTS-NOT: nn.pad
// PARTS: nn.concat {{.*}}(tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<7x2xf32>
func.func @model(%w: tensor<7x2xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %s0 = nn.slice %w {sizes = array<i64: 1, 2>, starts = array<i64: 3, 0>, strides = array<i64: 1, 1>} : (tensor<7x2xf32>) -> tensor<1x2xf32>
  %s1 = nn.slice %w {sizes = array<i64: 1, 2>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<7x2xf32>) -> tensor<1x2xf32>
  %s2 = nn.slice %w {sizes = array<i64: 1, 2>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<7x2xf32>) -> tensor<1x2xf32>
  %s3 = nn.slice %w {sizes = array<i64: 1, 2>, starts = array<i64: 6, 0>, strides = array<i64: 1, 1>} : (tensor<7x2xf32>) -> tensor<1x2xf32>
  %s4 = nn.slice %w {sizes = array<i64: 1, 2>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<7x2xf32>) -> tensor<1x2xf32>
  %m0 = nn.exp %s0 : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %m1 = nn.mul %m0, %s1 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %m2 = nn.mul %m1, %s2 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %m3 = nn.mul %m2, %s3 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %m4 = nn.mul %m3, %s4 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %r = nn.reduce_sum %m4 {dimensions = array<i64: 0, 1>} : (tensor<1x2xf32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// SUMS
// The model is gone; a value with several uses sums its gradients.
// SUMS-NOT: @model
// SUMS-LABEL: func.func @forward_backward(
// SUMS-SAME: %arg0: tensor<3xf32> {train.role = #train.parameter<"w">}
// SUMS-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.gradient<"w">})
// SUMS: %[[ONE:.*]] = nn.constant dense<1.0{{.*}}> : tensor<3xf32>
// SUMS: %[[EXP:.*]] = nn.exp %arg0
// SUMS: %[[TANH:.*]] = nn.tanh %arg0
// SUMS: %[[LOSS:.*]] = nn.reduce_sum
// SUMS: %[[SQUARE:.*]] = nn.mul %[[TANH]], %[[TANH]]
// SUMS: %[[SLOPE:.*]] = nn.sub %[[ONE]], %[[SQUARE]]
// SUMS: %[[GRADIENT:.*]] = nn.add %[[SLOPE]], %[[EXP]]
// SUMS: return %[[LOSS]], %[[GRADIENT]]
// SUMS-NOT: func.func
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss},
        tensor<3xf32> {train.role = #train.output<"y">}) {
  %0 = nn.exp %w : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.tanh %w : (tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.add %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %3 = nn.reduce_sum %2 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %3, %2 : tensor<f32>, tensor<3xf32>
}

// -----

// NEEDED
// Neither the input nor the frozen parameter and what lies after them costs anything.
// NEEDED-LABEL: func.func @forward_backward(
// NEEDED-COUNT-1: nn.exp
// NEEDED-COUNT-1: nn.matmul
// NEEDED: nn.reduce_sum
// NEEDED-NOT: nn.mul{{ }}
// NEEDED: nn.matmul {{.*}} {transpose_a}
// NEEDED-NOT: nn.matmul
// NEEDED: return
func.func @model(%x: tensor<2x4xf32> {train.role = #train.input<"x">},
                 %frozen: tensor<2x4xf32> {train.role = #train.parameter<"frozen", run = frozen>},
                 %w: tensor<4x3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.sub %x, %frozen : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = nn.exp %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = nn.matmul %1, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %3 = nn.reduce_sum %2 {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// NAMES
// A gradient's operations are named after the node that they belong to.
// NAMES: nn.gelu {{.*}} loc("h.1.mlp.act")
// NAMES: nn.erf {{.*}} loc("gradient"("h.1.mlp.act"))
// NAMES: nn.mul {{.*}} loc("gradient"("h.1.mlp.act"))
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.gelu %w : (tensor<3xf32>) -> tensor<3xf32> loc("h.1.mlp.act")
  %1 = nn.mul %0, %0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> loc("h.1.square")
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32> loc("loss")
  return %2 : tensor<f32>
}

// -----

// TIED
// A table that is embedding and projection: the scatter adds into the projection's gradient.
// TIED-LABEL: func.func @forward_backward(
// TIED: %[[PROJECTION:.*]] = nn.matmul {{.*}} {transpose_a}
// TIED: %[[TABLE:.*]] = nn.scatter_add %[[PROJECTION]], %arg1
// TIED-NOT: nn.add
// TIED: return %{{.*}}, %[[TABLE]]
func.func @model(%table: tensor<9x4xf32> {train.role = #train.parameter<"wte">},
                 %ids: tensor<5xi64> {train.role = #train.input<"ids">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.gather %table, %ids : (tensor<9x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
  %1 = nn.tanh %0 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %2 = nn.matmul %1, %table {transpose_b} : (tensor<5x4xf32>, tensor<9x4xf32>) -> tensor<5x9xf32>
  %3 = nn.reduce_sum %2 {dimensions = array<i64: 0, 1>} : (tensor<5x9xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// FROZEN
// Never a gradient that is quietly zero: every parameter without one is named, and frozen.
// FROZEN: warning: parameters 'unused', 'rounded' do not reach the loss: they keep their values
// FROZEN: func.func @forward_backward({{.*}}#train.parameter<"w">{{.*}}#train.parameter<"unused", run = frozen, module = "head.unused">{{.*}}#train.parameter<"rounded", run = frozen>{{.*}} -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.gradient<"w">})
// FROZEN: func.func @evaluate({{.*}}#train.parameter<"unused", run = frozen, module = "head.unused">
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">},
                 %unused: tensor<3xf32> {train.role = #train.parameter<"unused", module = "head.unused">},
                 %rounded: tensor<3xf32> {train.role = #train.parameter<"rounded">},
                 %frozen: tensor<3xf32> {train.role = #train.parameter<"frozen", run = frozen>})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.floor %rounded : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.mul %0, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// NOTHING
// NOTHING: error: parameter 'w' does not reach the loss: nothing is left to train
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">},
                 %x: tensor<f32> {train.role = #train.input<"x">})
    -> (tensor<f32> {train.role = #train.loss}) {
  return %x : tensor<f32>
}

// -----

// ERRORS
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}) {
  // expected-error@+1 {{operation other.thing has no gradient}}
  %0 = "other.thing"(%w) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.reduce_sum %0 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// ERRORS
// expected-error@+1 {{differentiate expects a function @model whose first result is a scalar loss}}
module {
  func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
      -> (tensor<3xf32> {train.role = #train.output<"y">}) {
    return %w : tensor<3xf32>
  }
}

// -----

// BUFFER
// A buffer has no gradient; what the model makes of it comes after the gradients.
// BUFFER-LABEL: func.func @forward_backward(
// BUFFER-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.gradient<"w">}, tensor<3xf32> {train.role = #train.new_value<"mean">})
// BUFFER: %[[NEW:.*]] = nn.add %arg1, %{{.*}}
// BUFFER: return %{{.*}}, %{{.*}}, %[[NEW]]
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">},
                 %mean: tensor<3xf32> {train.role = #train.buffer<"mean">},
                 %x: tensor<3xf32> {train.role = #train.input<"x">})
    -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.new_value<"mean">},
        tensor<3xf32> {train.role = #train.output<"y">}) {
  %0 = nn.add %mean, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.mul %0, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %2, %0, %1 : tensor<f32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// ERRORS
// expected-error@+1 {{buffer "mean" gets no new value}}
func.func @model(%w: tensor<3xf32> {train.role = #train.parameter<"w">},
                 %mean: tensor<3xf32> {train.role = #train.buffer<"mean">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.mul %mean, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.reduce_sum %0 {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
