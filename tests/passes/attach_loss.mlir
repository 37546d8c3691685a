// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section CLASSES %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=CLASSES
// RUN: %section MSE %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=MSE
// RUN: %section TAKEN %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=TAKEN
// RUN: %section BCE %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=BCE
// RUN: %section OUTPUT %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=OUTPUT
// RUN: %section MASKED %s | %trainc-opt -split-input-file -attach-loss | %FileCheck %s --check-prefix=MASKED
// RUN: %section ALIKE %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=ALIKE
// RUN: %section PARTS %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=PARTS
// RUN: %section WHOLE %s | %trainc-opt -attach-loss | %FileCheck %s --check-prefix=WHOLE
// RUN: %section OWN %s | %trainc-opt -split-input-file -attach-loss | %FileCheck %s --check-prefix=OWN
// RUN: %section ERRORS %s | %trainc-opt -split-input-file -verify-diagnostics -attach-loss -o /dev/null

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
module attributes {train.losses = ["mse"]} {
  func.func @model(%x: tensor<2x3xf32> {train.role = #train.input<"labels">})
      -> (tensor<2x3xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<2x3xf32>
  }
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
module attributes {train.losses = ["mse"]} {
  func.func @model(%x: tensor<2x3xf32> {train.role = #train.input<"x">})
      -> (tensor<2x3xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<2x3xf32>
  }
}

// -----

// BCE
// BCE: func.func @model(%arg0: tensor<5xf32> {{.*}}, %arg1: tensor<5xf32> {train.role = #train.label<"labels">})
// BCE: %[[NEGATED:.*]] = nn.neg %arg0
// BCE: %[[POSITIVE:.*]] = nn.softplus %[[NEGATED]]
// BCE: %[[REST:.*]] = nn.sub %{{.*}}, %arg1
// BCE: %[[PRODUCT:.*]] = nn.mul %[[REST]], %arg0
// BCE: nn.add %[[POSITIVE]], %[[PRODUCT]]
module attributes {train.losses = ["bce_with_logits"]} {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
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
module attributes {train.losses = ["own=output"]} {
  func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">}, %mask: tensor<2x3xf32> {train.role = #train.input<"mask">})
      -> (tensor<f32> {train.role = #train.output<"own">}) {
    %total = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %count = nn.reduce_sum %mask {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %mean = nn.div %total, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %mean : tensor<f32>
  }
}

// -----

// MASKED
// What training changes is not a count.
// MASKED-LABEL: func.func @model
// MASKED-NOT: loss_weight
module attributes {train.losses = ["own=output"]} {
  func.func @model(%x: tensor<2x3xf32> {train.role = #train.input<"x">}, %scales: tensor<2x3xf32> {train.role = #train.parameter<"s">})
      -> (tensor<f32> {train.role = #train.output<"own">}) {
    %total = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %count = nn.reduce_sum %scales {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %mean = nn.div %total, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %mean : tensor<f32>
  }
}

// -----

// OUTPUT
// The named output becomes the loss; the others stay.
// OUTPUT: func.func @model(%arg0: tensor<5xf32>
// OUTPUT-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<5xf32> {train.role = #train.output<"y">})
// OUTPUT: %[[LOSS:.*]] = nn.reshape %arg1
// OUTPUT: return %[[LOSS]], %arg0
module attributes {train.losses = ["own=output"]} {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">},
                   %loss: tensor<1xf32> {train.role = #train.input<"l">})
      -> (tensor<5xf32> {train.role = #train.output<"y">},
          tensor<1xf32> {train.role = #train.output<"own">}) {
    return %x, %loss : tensor<5xf32>, tensor<1xf32>
  }
}

// -----

// OWN
// A scaled mean over counts is one, too.
// OWN-LABEL: func.func @model
// OWN-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<f32> {train.role = #train.loss_weight})
module attributes {train.losses = ["own=output"]} {
  func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">}, %mask: tensor<2x3xf32> {train.role = #train.input<"mask">})
      -> (tensor<f32> {train.role = #train.output<"own">}) {
    %half = nn.constant dense<0.5> : tensor<f32>
    %total = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %count = nn.reduce_sum %mask {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %mean = nn.div %total, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %scaled = nn.mul %mean, %half : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %scaled : tensor<f32>
  }
}

// -----

// OWN
// Beside a term that weighs alike everywhere it is a part by itself; what keeps its divisor from 0 does not count.
// OWN-LABEL: func.func @model
// OWN-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<f32> {train.role = #train.loss_part<0>}, tensor<f32> {train.role = #train.loss_weight<0>}, tensor<f32> {train.role = #train.loss_part<1>})
// OWN: %[[COUNT:.*]] = nn.reduce_sum %arg1
// OWN: %[[NONE:.*]] = nn.equal %[[COUNT]], %{{.*}}
// OWN: %[[NEXT:.*]] = nn.constant dense<9.99{{.*}}E-21>
// OWN: %[[COUNTED:.*]] = nn.select %[[NONE]], %[[NEXT]], %[[COUNT]]
// OWN: nn.div %[[COUNTED]], %{{.*}}
module attributes {train.losses = ["own=output"]} {
  func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">}, %mask: tensor<2x3xf32> {train.role = #train.input<"mask">})
      -> (tensor<f32> {train.role = #train.output<"own">}) {
    %one = nn.constant dense<1.0> : tensor<f32>
    %total = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %count = nn.reduce_sum %mask {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %divisor = nn.maximum %count, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %mean = nn.div %total, %divisor : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %square = nn.mul %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %squares = nn.reduce_sum %square {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %loss = nn.add %mean, %squares : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// OWN
// A sum over labels is the step's, but not where a number divides it, which may be how many the micro-batch has.
// OWN-LABEL: func.func @model
// OWN-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<f32> {train.role = #train.loss_part<0, is_sum = true>}, tensor<f32> {train.role = #train.loss_part<1>})
module attributes {train.losses = ["sum=output", "mean=output"]} {
  func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">}, %labels: tensor<2xi64> {train.role = #train.input<"labels">})
      -> (tensor<f32> {train.role = #train.output<"sum">}, tensor<f32> {train.role = #train.output<"mean">}) {
    %zero = nn.constant dense<0.0> : tensor<2x3xf32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %mask = nn.label_mask %labels : (tensor<2xi64>) -> tensor<2x3xi1>
    %kept = nn.select %mask, %x, %zero : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %picked = nn.reduce_sum %kept {dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
    %losses = nn.neg %picked : (tensor<2xf32>) -> tensor<2xf32>
    %sum = nn.reduce_sum %losses {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %mean = nn.div %sum, %two : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %sum, %mean : tensor<f32>, tensor<f32>
  }
}

// -----

// ERRORS
// expected-error@+2 {{the model has 2 outputs and none is named for the loss}}
// expected-note@+1 {{try: --loss OUTPUT=cross_entropy, with OUTPUT one of logits, hidden}}
module {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"logits">},
          tensor<5xf32> {train.role = #train.output<"hidden">}) {
    return %x, %x : tensor<5xf32>, tensor<5xf32>
  }
}

// -----

// ERRORS
// expected-error@+1 {{loss 'cross_entropy' needs an output of floats with at least one axis, over classes; output 'y' is tensor<5xi64>}}
module {
  func.func @model(%x: tensor<5xi64> {train.role = #train.input<"x">})
      -> (tensor<5xi64> {train.role = #train.output<"y">}) {
    return %x : tensor<5xi64>
  }
}

// -----

// ERRORS
// expected-error@+2 {{--loss names no loss, found 'hinge'}}
// expected-note@+1 {{try: [OUTPUT=]NAME[,SETTING=VALUE...][*FACTOR], with NAME one of bce, bce_with_logits, cosine_embedding, cross_entropy, huber, kl_div, l1, mse, nll, output, smooth_l1}}
module attributes {train.losses = ["hinge"]} {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
}

// -----

// ERRORS
// expected-error@+2 {{the model has no output 'other'}}
// expected-note@+1 {{try: --loss OUTPUT=mse, with OUTPUT one of y}}
module attributes {train.losses = ["other=mse"]} {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
}

// -----

// ERRORS
// expected-error@+1 {{loss 'output' needs an output that is a scalar of floats; output 'y' is tensor<5xf32>}}
module attributes {train.losses = ["output"]} {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">})
      -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
}

// -----

// ALIKE
// Losses that weigh alike in every micro-batch are one mean, with the samples' losses; labels of one output are shared.
// ALIKE: train.loss = "y=mse + y=l1*0.5 + z=huber,delta=2"
// ALIKE-SAME: train.objective = "mse of output 0 + l1*0.5 of output 0 + huber,delta=2 of output 1"
// ALIKE: func.func @model({{.*}}#train.label<"y_labels">}, %{{.*}}#train.label<"z_labels">})
// ALIKE-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<2x3xf32> {train.role = #train.output<"y">}, tensor<2xf32> {train.role = #train.output<"z">}, tensor<2xf32> {train.role = #train.sample_losses}, tensor<2xf32> {train.role = #train.metric<"y_mean_absolute_error">}, tensor<2xf32> {train.role = #train.metric<"y_mean_squared_error">}, tensor<2xf32> {train.role = #train.metric<"z_mean_absolute_error">}
// ALIKE: %[[HALF:.*]] = nn.constant dense<5.000000e-01>
// ALIKE: %[[WEIGHTED:y_loss.weighted]] = nn.mul %y_loss.mean{{.*}}, %[[HALF]]
// ALIKE: nn.add %y_loss.mean{{.*}}, %[[WEIGHTED]]
module attributes {train.losses = ["y=mse", "y=l1*0.5", "z=huber,delta=2.0"]} {
  func.func @model(%y: tensor<2x3xf32> {train.role = #train.input<"a">}, %z: tensor<2xf32> {train.role = #train.input<"b">})
      -> (tensor<2x3xf32> {train.role = #train.output<"y">}, tensor<2xf32> {train.role = #train.output<"z">}) {
    return %y, %z : tensor<2x3xf32>, tensor<2xf32>
  }
}

// -----

// PARTS
// A mean that the labels weigh and one that they do not; the output that is a loss of its own is gone.
// PARTS: func.func @model({{.*}}#train.label<"labels", index_bound = 5, ignore_index = 7>})
// PARTS-SAME: -> (tensor<f32> {train.role = #train.loss}, tensor<2x5x3xf32> {train.role = #train.output<"y">}, tensor<f32> {train.role = #train.loss_part<0>}, tensor<f32> {train.role = #train.loss_weight<0>}, tensor<f32> {train.role = #train.loss_part<1>}, tensor<f32> {train.role = #train.metric<"y_accuracy", weight = 0>}, tensor<f32> {train.role = #train.metric_weight<0>})
// PARTS: nn.transpose %arg0 {permutation = array<i64: 0, 2, 1>}
module attributes {train.losses = ["y=cross_entropy,axis=1,ignore_index=7", "own=output*0.01"]} {
  func.func @model(%y: tensor<2x5x3xf32> {train.role = #train.input<"a">}, %own: tensor<f32> {train.role = #train.input<"b">})
      -> (tensor<2x5x3xf32> {train.role = #train.output<"y">}, tensor<f32> {train.role = #train.output<"own">}) {
    return %y, %own : tensor<2x5x3xf32>, tensor<f32>
  }
}

// -----

// WHOLE
// A sum over the step is no mean of the micro-batches'.
// WHOLE: -> (tensor<f32> {train.role = #train.loss}, tensor<2x3xf32> {train.role = #train.output<"y">}, tensor<f32> {train.role = #train.loss_part<0, is_sum = true>}, tensor<2xf32> {train.role = #train.sample_losses<0>}
module attributes {train.losses = ["l1,reduction=sum"]} {
  func.func @model(%y: tensor<2x3xf32> {train.role = #train.input<"a">}) -> (tensor<2x3xf32> {train.role = #train.output<"y">}) {
    return %y : tensor<2x3xf32>
  }
}

// -----

// ERRORS
// expected-error@+2 {{loss 'mse' of output 'y' is given twice}}
// expected-note@+1 {{try: one of the two}}
module attributes {train.losses = ["mse", "y=mse*2"]} {
  func.func @model(%x: tensor<5xf32> {train.role = #train.input<"x">}) -> (tensor<5xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5xf32>
  }
}

// -----

// ERRORS
// expected-error@+2 {{loss 'cross_entropy' has axis 2; output 'y' is tensor<5x3xf32>}}
// expected-error@+1 {{loss 'nll' has 2 class_weights for 3 classes; output 'y' is tensor<5x3xf32>}}
module attributes {train.losses = ["cross_entropy,axis=2", "nll,class_weights=1,2"]} {
  func.func @model(%x: tensor<5x3xf32> {train.role = #train.input<"x">}) -> (tensor<5x3xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5x3xf32>
  }
}

// -----

// ERRORS
// expected-error@+1 {{loss 'bce_with_logits' has 2 numbers as pos_weight, which are one, or one for each element of the last axis; output 'y' is tensor<5x3xf32>}}
module attributes {train.losses = ["bce_with_logits,pos_weight=1,2"]} {
  func.func @model(%x: tensor<5x3xf32> {train.role = #train.input<"x">}) -> (tensor<5x3xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5x3xf32>
  }
}

// -----

// ERRORS
// expected-error@+2 {{the model has no output 'z', which input2 of loss 'cosine_embedding' names}}
// expected-note@+1 {{try: input2=OUTPUT, with OUTPUT one of those of the model}}
module attributes {train.losses = ["cosine_embedding,input2=z"]} {
  func.func @model(%x: tensor<5x3xf32> {train.role = #train.input<"x">}) -> (tensor<5x3xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5x3xf32>
  }
}

// -----

// ERRORS
// expected-error@+1 {{loss 'cosine_embedding' needs two outputs of one type, but 'y' and 'z' are tensor<5x3xf32> and tensor<5x2xf32>}}
module attributes {train.losses = ["y=cosine_embedding,input2=z"]} {
  func.func @model(%x: tensor<5x3xf32> {train.role = #train.input<"x">}, %w: tensor<5x2xf32> {train.role = #train.input<"w">})
      -> (tensor<5x3xf32> {train.role = #train.output<"y">}, tensor<5x2xf32> {train.role = #train.output<"z">}) {
    return %x, %w : tensor<5x3xf32>, tensor<5x2xf32>
  }
}

// -----

// ERRORS
// expected-error@+1 {{loss 'cosine_embedding' needs outputs of floats, [samples, features] or [features]; output 'y' is tensor<5x3x2xf32>}}
module attributes {train.losses = ["cosine_embedding,input2=y"]} {
  func.func @model(%x: tensor<5x3x2xf32> {train.role = #train.input<"x">}) -> (tensor<5x3x2xf32> {train.role = #train.output<"y">}) {
    return %x : tensor<5x3x2xf32>
  }
}
