// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section CLASSES %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=CLASSES
// RUN: %section MSE %s | %trainc-opt -attach-loss=kind=mse | %FileCheck %s --check-prefix=MSE
// RUN: %section TAKEN %s | %trainc-opt -attach-loss=kind=mse | %FileCheck %s --check-prefix=TAKEN
// RUN: %section BCE %s | %trainc-opt -attach-loss=kind=bce_with_logits | %FileCheck %s --check-prefix=BCE
// RUN: %section OUTPUT %s | %trainc-opt -attach-loss="kind=output output=own" | %FileCheck %s --check-prefix=OUTPUT
// RUN: %section MASKED %s | %trainc-opt -split-input-file -attach-loss="kind=output output=own" | %FileCheck %s --check-prefix=MASKED
// RUN: %section ERRORS %s | %trainc-opt -split-input-file -verify-diagnostics -attach-loss -o /dev/null
// RUN: %section UNKNOWN %s | %trainc-opt -split-input-file -verify-diagnostics -attach-loss=kind=hinge -o /dev/null
// RUN: %section ABSENT %s | %trainc-opt -split-input-file -verify-diagnostics -attach-loss=output=other -o /dev/null
// RUN: %section NOSCALAR %s | %trainc-opt -split-input-file -verify-diagnostics -attach-loss=kind=output -o /dev/null

// CLASSES
// CLASSES: train.loss = "cross_entropy"
// CLASSES: func.func @model(%arg0: tensor<2x4x7xf32> {{.*}}, %arg1: tensor<2x4xi64> {train.role = #train.label<"labels", index_bound = 7, ignore_index = -100>})
// CLASSES-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<2x4x7xf32> {train.role = #train.output<"logits">}, tensor<f32> {train.role = #train.loss_weight}, tensor<f32> {train.role = #train.metric<"accuracy">}, tensor<f32> {train.role = #train.metric<"top_5_accuracy">})
// CLASSES: %[[LOSS:.*]] = nn.cross_entropy %arg0, %arg1 {ignore_index = -100 : i64}
// The mean weighs as many of its eight labels as are not ignored.
// CLASSES: %[[COUNT:.*]] = nn.reduce_sum %{{.*}} {dimensions = array<i64: 0, 1>}
// CLASSES: %[[ALL:.*]] = nn.constant dense<8.0{{.*}}> : tensor<f32>
// CLASSES: %[[WEIGHT:.*]] = nn.div %[[COUNT]], %[[ALL]]
// Of the other six classes a label that is first beats all, one among five at least two.
// CLASSES: %[[BEATEN:loss.beaten_classes]] = nn.reduce_sum
// CLASSES: %[[ALL_BUT_ONE:.*]] = nn.constant dense<5.5{{.*}}> : tensor<2x4xf32>
// CLASSES: nn.greater %[[BEATEN]], %[[ALL_BUT_ONE]]
// CLASSES: %[[ALL_BUT_FIVE:.*]] = nn.constant dense<1.5{{.*}}> : tensor<2x4xf32>
// CLASSES: nn.greater %[[BEATEN]], %[[ALL_BUT_FIVE]]
// Each is a mean over the labels that count.
// CLASSES: %[[ACCURACY:.*]] = nn.div
// CLASSES: %[[TOP:.*]] = nn.div
// CLASSES: return %[[LOSS]], %arg0, %[[WEIGHT]], %[[ACCURACY]], %[[TOP]]
func.func @model(%x: tensor<2x4x7xf32> {train.role = #train.input<"x">})
    -> (tensor<2x4x7xf32> {train.role = #train.output<"logits">}) {
  return %x : tensor<2x4x7xf32>
}

// -----

// TAKEN
// TAKEN: func.func @model({{.*}}#train.input<"labels">{{.*}}, %arg1: tensor<2x3xf32> {train.role = #train.label<"loss_labels">})
func.func @model(%x: tensor<2x3xf32> {train.role = #train.input<"labels">})
    -> (tensor<2x3xf32> {train.role = #train.output<"y">}) {
  return %x : tensor<2x3xf32>
}

// -----

// MSE
// MSE: func.func @model(%arg0: tensor<2x3xf32> {{.*}}, %arg1: tensor<2x3xf32> {train.role = #train.label<"labels">})
// MSE: %[[DIFFERENCE:.*]] = nn.sub %arg0, %arg1
// MSE: %[[SQUARE:.*]] = nn.mul %[[DIFFERENCE]], %[[DIFFERENCE]]
// MSE: %[[SUM:.*]] = nn.reduce_sum %[[SQUARE]] {dimensions = array<i64: 0, 1>}
// MSE: %[[COUNT:.*]] = nn.constant dense<6.0{{.*}}> : tensor<f32>
// MSE: %[[MEAN:.*]] = nn.div %[[SUM]], %[[COUNT]]
// And the mean of each sample.
// MSE: %[[PART:.*]] = nn.reduce_sum %[[SQUARE]] {dimensions = array<i64: 1>}
// MSE: %[[SAMPLES:.*]] = nn.div %[[PART]], %{{.*}} : {{.*}} -> tensor<2xf32>
// MSE: %[[ABSOLUTE:.*]] = nn.abs
// MSE: return %[[MEAN]], %arg0, %[[SAMPLES]], %{{.*}}, %{{.*}}
func.func @model(%x: tensor<2x3xf32> {train.role = #train.input<"x">})
    -> (tensor<2x3xf32> {train.role = #train.output<"y">}) {
  return %x : tensor<2x3xf32>
}

// -----

// BCE
// BCE: func.func @model(%arg0: tensor<5xf32> {{.*}}, %arg1: tensor<5xf32> {train.role = #train.label<"labels">})
// BCE: %[[NEGATED:.*]] = nn.neg %arg0
// BCE: %[[POSITIVE:.*]] = nn.softplus %[[NEGATED]]
// BCE: %[[REST:.*]] = nn.sub %{{.*}}, %arg1
// BCE: %[[PRODUCT:.*]] = nn.mul %[[REST]], %arg0
// BCE: nn.add %[[POSITIVE]], %[[PRODUCT]]
func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
    -> (tensor<5xf32> {train.role = #train.output<"y">}) {
  return %x : tensor<5xf32>
}

// -----

// MASKED
// A sum over another that the inputs decide: its gradient is 0 where the divisor is, its weight a sixth of that.
// MASKED-LABEL: func.func @model
// MASKED-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<f32> {train.role = #train.loss_weight})
// MASKED: %[[TOTAL:.*]] = nn.reduce_sum %arg0
// MASKED: %[[COUNT:.*]] = nn.reduce_sum %arg1
// MASKED: %[[NONE:.*]] = nn.equal %[[COUNT]], %{{.*}}
// MASKED: %[[DIVISOR:.*]] = nn.select %[[NONE]], %{{.*}}, %[[COUNT]]
// MASKED: %[[MEAN:.*]] = nn.div %[[TOTAL]], %[[DIVISOR]]
// MASKED: %[[LOSS:.*]] = nn.select %[[NONE]], %{{.*}}, %[[MEAN]]
// MASKED: %[[WEIGHT:.*]] = nn.div %[[COUNT]], %{{.*}}
// MASKED: return %[[LOSS]], %[[WEIGHT]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">}, %mask: tensor<2x3xf32> {train.role = #train.input<"mask">})
    -> (tensor<f32> {train.role = #train.output<"own">}) {
  %total = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %count = nn.reduce_sum %mask {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %mean = nn.div %total, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %mean : tensor<f32>
}

// -----

// MASKED
// What training changes is no count.
// MASKED-LABEL: func.func @model
// MASKED-NOT: loss_weight
func.func @model(%x: tensor<2x3xf32> {train.role = #train.input<"x">}, %scales: tensor<2x3xf32> {train.role = #train.parameter<"s">})
    -> (tensor<f32> {train.role = #train.output<"own">}) {
  %total = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %count = nn.reduce_sum %scales {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %mean = nn.div %total, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %mean : tensor<f32>
}

// -----

// OUTPUT
// The named output becomes the loss; the others stay.
// OUTPUT: func.func @model(%arg0: tensor<5xf32>
// OUTPUT-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<5xf32> {train.role = #train.output<"y">})
// OUTPUT: %[[LOSS:.*]] = nn.reshape %arg1
// OUTPUT: return %[[LOSS]], %arg0
func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">},
                 %loss: tensor<1xf32> {train.role = #train.input<"l">})
    -> (tensor<5xf32> {train.role = #train.output<"y">},
        tensor<1xf32> {train.role = #train.output<"own">}) {
  return %x, %loss : tensor<5xf32>, tensor<1xf32>
}

// -----

// ERRORS
// expected-error@+2 {{the model has 2 outputs and none is named for the loss}}
// expected-note@+1 {{try: --loss-output with one of logits, hidden}}
module {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"logits">},
          tensor<5xf32> {train.role = #train.output<"hidden">}) {
    return %x, %x : tensor<5xf32>, tensor<5xf32>
  }
}

// -----

// ERRORS
// expected-error@+1 {{loss 'cross_entropy' needs an output of floats with at least one axis, the last one over classes, but output 'y' is tensor<5xi64>}}
module {
  func.func @model(%x: tensor<5xi64> {train.role = #train.input<"x">})
      -> (tensor<5xi64> {train.role = #train.output<"y">}) {
    return %x : tensor<5xi64>
  }
}

// -----

// UNKNOWN
// expected-error@+2 {{unknown loss 'hinge'}}
// expected-note@+1 {{try: --loss with one of bce_with_logits, cross_entropy, mse, output}}
module {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
}

// -----

// ABSENT
// expected-error@+2 {{the model has no output 'other'}}
// expected-note@+1 {{try: --loss-output with one of y}}
module {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
}

// -----

// NOSCALAR
// expected-error@+1 {{loss 'output' needs an output that is a scalar of floats, but output 'y' is tensor<5xf32>}}
module {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
}
