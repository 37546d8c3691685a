// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s --attach-optimizer=kind=sgd | FileCheck %s
// RUN: sed 's/ #train.loss_weight/ #train.output<"share">/' %s | %trainc-opt --attach-optimizer=kind=sgd | FileCheck %s --check-prefix=PLAIN
//
// What a step sums beside its gradients decides on the device whether its update is taken.

// A fault of the batch or of an index, the loss times its weight, the weight.
// CHECK-LABEL: func.func @forward_backward
// CHECK-SAME: %[[WEIGHT:[a-z0-9]+]]: tensor<f32> {train.role = #train.input<"share">}
// CHECK-SAME: %[[CHECK:[a-z0-9]+]]: tensor<2xf64> {train.role = #train.input<"check">}
// CHECK-SAME: %[[FAULT:[a-z0-9]+]]: tensor<f64> {train.role = #train.batch_fault}
// CHECK-SAME: tensor<3xf32> {train.role = #train.step_totals})
// CHECK: %[[FAULTY:.*]] = nn.greater %[[FAULT]]
// CHECK: %[[NUMBER:.*]] = nn.slice %[[CHECK]] {{.*}}starts = array<i64: 0>
// CHECK: nn.or %[[FAULTY]]
// A mean over no label is not a number, and no part of the sum.
// CHECK: %[[COUNTS:.*]] = nn.greater %[[WEIGHT]]
// CHECK: %[[PRODUCT:.*]] = nn.mul %{{.*}}, %[[WEIGHT]]
// CHECK: nn.select %[[COUNTS]], %[[PRODUCT]]
// CHECK: return

// CHECK-LABEL: func.func @update
// CHECK-SAME: %[[OLD:[a-z0-9]+]]: tensor<16xf32> {train.role = #train.run_parameters<undecayed>}
// CHECK-SAME: %[[GRADIENT:[a-z0-9]+]]: tensor<16xf32> {train.role = #train.run_gradients<undecayed>}
// CHECK-SAME: %[[BUFFER:[a-z0-9]+]]: tensor<16xf32> {train.role = #train.state<undecayed, slot = 0>}
// CHECK-SAME: %[[TOTALS:[a-z0-9]+]]: tensor<3xf32> {train.role = #train.step_totals}
// The loss is below the trainer's limit, and all of it is finite.
// CHECK: nn.and
// CHECK: %[[SOUND:.*]] = nn.and
// CHECK: %[[WITHIN:.*]] = nn.less_or_equal %{{.*}}, %{{.*}} : (tensor<f64>, tensor<f64>) -> tensor<i1>
// CHECK: %[[APPLIED:.*]] = nn.and %[[SOUND]], %[[WITHIN]]
// The norm is not a number where the step is not sound, negative where the loss is above the limit.
// CHECK: %[[MINUS:.*]] = nn.neg %[[GRADIENT_NORM:[a-z_0-9]+]]
// CHECK: %[[SKIPPED:.*]] = nn.select %[[SOUND]], %[[MINUS]]
// CHECK: %[[NORM:.*]] = nn.select %[[APPLIED]], %[[GRADIENT_NORM]], %[[SKIPPED]]
// Each number of the clipped gradient between two limits.
// CHECK: nn.minimum
// CHECK: nn.maximum
// What follows in the formula reads the state that is stored, so that the old one may be written over.
// CHECK: %[[NEW:.*]] = nn.add
// CHECK: %[[KEPT:.*]] = nn.select %{{.*}}, %[[NEW]], %[[BUFFER]]
// CHECK: nn.mul %[[KEPT]]
// CHECK: %[[PARAMETER:.*]] = nn.select %{{.*}}, %{{.*}}, %[[OLD]]
// CHECK: return %[[NORM]], %[[PARAMETER]], %[[KEPT]]

// Without weights the sum is over as many micro-batches as the trainer says.
// PLAIN-LABEL: func.func @update
// PLAIN-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"gradient_scale">}
// PLAIN: nn.mul %{{.*}}, %[[SCALE]]

module attributes {train.layout = #train.layout<runs = [0, 16, 0, 0], parameters = []>} {
  func.func @forward_backward(%w: tensor<16xf32> {train.role = #train.parameter<"w">},
                              %share: tensor<f32> {train.role = #train.input<"share">},
                              %check: tensor<2xf64> {train.role = #train.input<"check">})
      -> (tensor<f32> {train.role = #train.loss},
          tensor<16xf32> {train.role = #train.gradient<"w">},
          tensor<f32> {train.role = #train.loss_weight},
          tensor<2xf64> {train.role = #train.index_check<[]>}) {
    %0 = nn.reduce_sum %w {dimensions = array<i64: 0>} : (tensor<16xf32>) -> tensor<f32>
    return %0, %w, %share, %check : tensor<f32>, tensor<16xf32>, tensor<f32>, tensor<2xf64>
  }
}
