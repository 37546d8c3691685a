// RUN: %trainc-opt %s --attach-optimizer=kind=adamw | FileCheck %s --check-prefix=ADAMW
// RUN: %trainc-opt %s --attach-optimizer=kind=sgd | FileCheck %s --check-prefix=SGD
// RUN: sed 's/parameters = \[\]/parameters = [#train.placed<"v", decayed at 0, 6 elements>, #train.placed<"w", decayed at 16, 15 elements>, #train.placed<"b", undecayed at 32, 16 elements>]/' %s | %trainc-opt --attach-optimizer=kind=lamb | FileCheck %s --check-prefix=LAMB
// RUN: sed 's/16, 0, 0/16, 32, 0/' %s | %trainc-opt --attach-optimizer=kind=sgd | FileCheck %s --check-prefix=BUFFER
// RUN: sed 's/train.layout.*16, 0, 0\]/train.groups = ["a-b", "c"], train.layout = #train.layout<runs = [32, 16, 48, 0, 0, 64, 0, 0]/' %s | %trainc-opt --attach-optimizer=kind=sgd | FileCheck %s --check-prefix=GROUPS
// RUN: sed 's/parameters = \[\]/parameters = [#train.placed<"w", decayed at 0, 32 elements>, #train.placed<"b", undecayed at 32, 16 elements>]/' %s >%t.placed
// RUN: %trainc-opt %t.placed --attach-optimizer=kind=adafactor | FileCheck %s --check-prefix=ADAFACTOR
// RUN: %trainc-opt %t.placed --attach-optimizer=kind=muon | FileCheck %s --check-prefix=MUON
// RUN: sed 's/train.layout.*16, 0, 0\]/train.groups = ["adamw"], train.layout = #train.layout<runs = [0, 0, 32, 16, 0, 0]/; s/, decayed at 0, 32 elements/&, group = 1/; s/, undecayed at 32, 16 elements/&, group = 1/; s/run = decayed/&, group = 1/; s/parameter<"b"/&, group = 1/' %t.placed | %trainc-opt --attach-optimizer=kind=muon | FileCheck %s --check-prefix=OTHERS
// RUN: not %trainc-opt %s --attach-optimizer=kind=adamx 2>&1 | FileCheck %s --check-prefix=UNKNOWN
//
// The update works on flat runs; weight decay touches the first run only.

// UNKNOWN: attach-optimizer: option 'kind=adamx': expects one of adafactor, adagrad, adam, adamw, lamb, lion, muon, nadam, rmsprop, sgd

// ADAMW-LABEL: func.func @update
// ADAMW-SAME: tensor<32xf32> {train.role = #train.run_parameters<decayed>}
// ADAMW-SAME: tensor<32xf32> {train.role = #train.run_gradients<decayed>}
// ADAMW-SAME: tensor<32xf32> {train.role = #train.state<decayed, slot = 0>}
// ADAMW-SAME: tensor<32xf32> {train.role = #train.state<decayed, slot = 1>}
// ADAMW-SAME: tensor<16xf32> {train.role = #train.run_parameters<undecayed>}
// ADAMW-SAME: tensor<f64> {train.role = #train.scalar<"weight_decay">}
// ADAMW-SAME: tensor<f64> {train.role = #train.gradient_norm}
// The norm is summed in f64 over both runs.
// ADAMW: nn.cast %{{.*}} : (tensor<32xf32>) -> tensor<32xf64>
// ADAMW: nn.reduce_sum %{{.*}} {dimensions = array<i64: 0>} : (tensor<32xf64>) -> tensor<f64>
// ADAMW: nn.reduce_sum %{{.*}} {dimensions = array<i64: 0>} : (tensor<16xf64>) -> tensor<f64>
// Bias corrections are f64 scalars.
// ADAMW: nn.pow %{{.*}} : (tensor<f64>, tensor<f64>) -> tensor<f64>
// ADAMW: return

// SGD-LABEL: func.func @update
// SGD-SAME: #train.scalar<"nesterov">
// SGD: nn.greater
// SGD: return

// Norms of each parameter's own elements of a run, and a step size for each of them.
// LAMB-LABEL: func.func @update
// LAMB: %[[DECAYED:.*]] = nn.constant dense<{{\[}}[0, 6], [16, 31]]> : tensor<2x2xi64>
// LAMB: nn.segment_norms %arg0, %[[DECAYED]] : (tensor<32xf32>, tensor<2x2xi64>) -> tensor<2xf64>
// LAMB: nn.segment_norms %{{.*}} : (tensor<32xf32>, tensor<2x2xi64>) -> tensor<2xf64>
// LAMB: nn.segment_broadcast %{{.*}} {elements = 32 : i64} : (tensor<2xf32>, tensor<2x2xi64>) -> tensor<32xf32>
// LAMB: nn.constant dense<{{\[}}[0, 16]]> : tensor<1x2xi64>
// LAMB: nn.segment_norms
// LAMB: return

// Of a matrix a row and a column, of a vector all: flat tensors of their own sizes.
// ADAFACTOR: train.state_layout = {{\[\[}}"row_var", "w", f32, 0, 0, 4, 1], ["variance", "b", f32, 0, 64, 16], ["col_var", "w", f32, 1, 128, 1, 8]]
// ADAFACTOR-LABEL: func.func @update
// ADAFACTOR-SAME: tensor<16xf32> {train.role = #train.state<decayed, slot = 0>}
// ADAFACTOR-SAME: tensor<16xf32> {train.role = #train.state<decayed, slot = 1>}
// ADAFACTOR-SAME: tensor<16xf32> {train.role = #train.state<undecayed, slot = 0>}
// ADAFACTOR-NOT: undecayed, slot = 1
// ADAFACTOR: nn.custom {{.*}}function = "segment_mean_squares"
// ADAFACTOR: nn.custom {{.*}}function = "segment_product"

// The matrix has no second moment, the vector both.
// MUON: train.state_layout = {{\[\[}}"momentum_buffer", "w", f32, 0, 0, 4, 8], ["exp_avg", "b", f32, 0, 128, 16], ["exp_avg_sq", "b", f32, 1, 192, 16]]
// MUON-LABEL: func.func @update
// MUON-SAME: tensor<32xf32> {train.role = #train.state<decayed, slot = 0>}
// MUON-NOT: #train.state<decayed, slot = 1
// MUON: nn.custom {{.*}}function = "orthogonalize", library = "orthogonalize", numbers = [array<i64: 0, 4, 8>, 32]
// MUON-NOT: nn.custom

// Nor is there a matrix where its group is AdamW's.
// OTHERS: train.state_layout = {{\[\[}}"exp_avg", "w", f32, 0, 0, 4, 8], ["exp_avg", "b", f32, 0, 128, 16], ["exp_avg_sq", "w", f32, 1, 192, 4, 8], ["exp_avg_sq", "b", f32, 1, 320, 16]]
// OTHERS-NOT: nn.custom

// A buffer becomes the mean of its new values; it has no state and no part in the norm.
// BUFFER-LABEL: func.func @update
// BUFFER-SAME: %[[SUM:[a-z0-9]+]]: tensor<32xf32> {train.role = #train.run_gradients<buffer>}
// BUFFER-SAME: %[[RATE:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"learning_rate">}
// BUFFER-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"gradient_scale">}
// BUFFER-SAME: tensor<32xf32> {train.role = #train.run_parameters<buffer>})
// BUFFER: %[[NARROW:.*]] = nn.cast %[[SCALE]] : (tensor<f64>) -> tensor<f32>
// BUFFER-NEXT: %[[SPREAD:.*]] = nn.broadcast %[[NARROW]]
// BUFFER-NEXT: %[[MEAN:.*]] = nn.mul %[[SUM]], %[[SPREAD]]
// BUFFER-NEXT: return {{.*}}, %[[MEAN]]

// Group a-b decays, c does not; each formula takes its group's scalars.
// GROUPS-LABEL: func.func @update
// GROUPS-SAME: tensor<48xf32> {train.role = #train.run_parameters<decayed, group = 1>}
// GROUPS-SAME: tensor<48xf32> {train.role = #train.run_gradients<decayed, group = 1>}
// GROUPS-SAME: tensor<48xf32> {train.role = #train.state<decayed, slot = 0, group = 1>}
// GROUPS-SAME: tensor<64xf32> {train.role = #train.run_parameters<undecayed, group = 2>}
// GROUPS-SAME: %[[RATE:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"learning_rate">}
// GROUPS-SAME: %[[DECAY:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"weight_decay">}
// GROUPS-SAME: %[[RATE1:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"learning_rate_of_a_b">}
// GROUPS-SAME: %[[DECAY1:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"weight_decay_of_a_b">}
// GROUPS-SAME: %[[RATE2:[a-z0-9]+]]: tensor<f64> {train.role = #train.scalar<"learning_rate_of_c">})
// GROUPS: nn.cast %[[DECAY]] :
// GROUPS: nn.cast %[[RATE]] :
// GROUPS: nn.cast %[[RATE]] :
// GROUPS: nn.cast %[[DECAY1]] :
// GROUPS: nn.cast %[[RATE1]] :
// GROUPS-NOT: nn.cast %[[RATE]] :
// GROUPS: nn.cast %[[RATE2]] :
// GROUPS: return

module attributes {train.layout = #train.layout<runs = [32, 16, 0, 0], parameters = []>} {
  func.func @forward_backward(
      %w: tensor<4x8xf32> {train.role = #train.parameter<"w", run = decayed>},
      %b: tensor<16xf32> {train.role = #train.parameter<"b">}) -> () {
    return
  }
}
