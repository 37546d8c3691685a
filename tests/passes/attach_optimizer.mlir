// RUN: %trainc-opt %s --attach-optimizer=kind=adamw | FileCheck %s --check-prefix=ADAMW
// RUN: %trainc-opt %s --attach-optimizer=kind=sgd | FileCheck %s --check-prefix=SGD
// RUN: not %trainc-opt %s --attach-optimizer=kind=adamx 2>&1 | FileCheck %s --check-prefix=UNKNOWN
//
// The update works on flat runs; weight decay touches the first run only.

// UNKNOWN: unknown optimizer 'adamx'; known: adamw, sgd

// ADAMW-LABEL: func.func @update
// ADAMW-SAME: tensor<32xf32> {train.kind = "run_parameters", train.run = 0 : i64}
// ADAMW-SAME: tensor<32xf32> {train.kind = "run_gradients", train.run = 0 : i64}
// ADAMW-SAME: tensor<32xf32> {train.kind = "run_state", train.run = 0 : i64, train.slot = 0 : i64}
// ADAMW-SAME: tensor<32xf32> {train.kind = "run_state", train.run = 0 : i64, train.slot = 1 : i64}
// ADAMW-SAME: tensor<16xf32> {train.kind = "run_parameters", train.run = 1 : i64}
// ADAMW-SAME: tensor<f64> {train.kind = "scalar", train.name = "weight_decay"}
// ADAMW-SAME: tensor<f64> {train.kind = "scalar", train.name = "gradient_norm"}
// The norm is summed in f64 over both runs.
// ADAMW: nn.cast %{{.*}} : (tensor<32xf32>) -> tensor<32xf64>
// ADAMW: nn.reduce_sum %{{.*}} {dimensions = array<i64: 0>} : (tensor<32xf64>) -> tensor<f64>
// ADAMW: nn.reduce_sum %{{.*}} {dimensions = array<i64: 0>} : (tensor<16xf64>) -> tensor<f64>
// Bias corrections are f64 scalars.
// ADAMW: nn.pow %{{.*}} : (tensor<f64>, tensor<f64>) -> tensor<f64>
// ADAMW: return

// SGD-LABEL: func.func @update
// SGD-SAME: train.name = "nesterov"
// SGD: nn.greater
// SGD: return

module attributes {train.runs = array<i64: 32, 16, 0>} {
  func.func @forward_backward(
      %w: tensor<4x8xf32> {train.kind = "parameter", train.name = "w", train.decay},
      %b: tensor<16xf32> {train.kind = "parameter", train.name = "b"}) -> () {
    return
  }
}
