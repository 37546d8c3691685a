// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// lstm-c1
func.func @lstm_c1(%gates: tensor<3x2x13xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{gates are steps x sequences x 4 hidden}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x13xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c1
func.func @no_step(%gates: tensor<0x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{with a step}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<0x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<1x2x3xf32>, tensor<2x3xf32>, tensor<1x2x3xf32>, tensor<0x2x12xf32>)
  return
}

// -----

// lstm-c1
func.func @recurrent_weight(%gates: tensor<3x2x12xf32>, %r: tensor<3x12xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{r is 4 hidden x hidden}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<3x12xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c2
func.func @lstm_c2(%gates: tensor<3x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<24xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{bias is a 'tensor<12xf32>', found 'tensor<24xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<24xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c2
func.func @lengths_type(%gates: tensor<3x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi32>) {
  // expected-error@+2 {{lengths is a 'tensor<2xi64>', found 'tensor<2xi32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi32>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c2
func.func @cell_size(%gates: tensor<3x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<3x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{c is a 'tensor<2x3xf32>', found 'tensor<3x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<3x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c3
func.func @lstm_c3(%gates: tensor<3x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{knows no activation 'gelu'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "gelu", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c3
func.func @too_few(%gates: tensor<3x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{expects 3 activations, each with an alpha and a beta}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh"], alphas = array<f64: 0.0, 0.0>, betas = array<f64: 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c3
func.func @negative_clip(%gates: tensor<3x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{clip is not negative}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = -1.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c3
func.func @no_slope(%gates: tensor<3x2x12xf32>, %r: tensor<12x3xf32>, %bias: tensor<12xf32>, %peepholes: tensor<9xf32>, %h: tensor<2x3xf32>, %c: tensor<2x3xf32>, %lengths: tensor<2xi64>) {
  // expected-error@+2 {{leaves the slope of 'elu' unknown}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "elu", "tanh"], alphas = array<f64: 0.0, -1.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  return
}

// -----

// lstm-c4
func.func @lstm_c4(%r: tensor<12x3xf32>, %peepholes: tensor<9xf32>, %lengths: tensor<2xi64>, %cells: tensor<3x2x3xf32>, %activated: tensor<3x2x12xf32>, %dstates: tensor<4x2x3xf32>, %dlast: tensor<2x3xf32>) {
  // expected-error@+2 {{cells is a 'tensor<4x2x3xf32>', found 'tensor<3x2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = nn.lstm_gradient %r, %peepholes, %lengths, %cells, %activated, %dstates, %dlast {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<12x3xf32>, tensor<9xf32>, tensor<2xi64>, tensor<3x2x3xf32>, tensor<3x2x12xf32>, tensor<4x2x3xf32>, tensor<2x3xf32>) -> (tensor<3x2x12xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

// lstm-c4
func.func @gates_of_gradient(%r: tensor<12x3xf32>, %peepholes: tensor<9xf32>, %lengths: tensor<2xi64>, %cells: tensor<4x2x3xf32>, %activated: tensor<3x2x11xf32>, %dstates: tensor<4x2x3xf32>, %dlast: tensor<2x3xf32>) {
  // expected-error@+2 {{the activated gates and r fit}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = nn.lstm_gradient %r, %peepholes, %lengths, %cells, %activated, %dstates, %dlast {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<12x3xf32>, tensor<9xf32>, tensor<2xi64>, tensor<4x2x3xf32>, tensor<3x2x11xf32>, tensor<4x2x3xf32>, tensor<2x3xf32>) -> (tensor<3x2x12xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK: %[[FORWARD:.*]]:4 = nn.lstm
// CHECK: %[[GATES:.*]], %[[H:.*]], %[[C:.*]] = nn.lstm_gradient %arg1, %arg3, %arg6, %[[FORWARD]]#2, %[[FORWARD]]#3,
// CHECK: nn.slice %[[FORWARD]]#0
// CHECK: %[[R:.*]] = nn.matmul {{.*}} {transpose_a}
// CHECK: %[[BIAS:.*]] = nn.reduce_sum %[[GATES]] {dimensions = array<i64: 0, 1>}
// CHECK: %[[PEEPHOLES:.*]] = nn.concat
// CHECK: return {{.*}}, %[[GATES]], %[[R]], %[[BIAS]], %[[PEEPHOLES]], %[[H]], %[[C]]
func.func @model(%gates: tensor<3x2x12xf32> {train.role = #train.parameter<"gates">},
                 %r: tensor<12x3xf32> {train.role = #train.parameter<"r">},
                 %bias: tensor<12xf32> {train.role = #train.parameter<"bias">},
                 %peepholes: tensor<9xf32> {train.role = #train.parameter<"peepholes">},
                 %h: tensor<2x3xf32> {train.role = #train.parameter<"h">},
                 %c: tensor<2x3xf32> {train.role = #train.parameter<"c">},
                 %lengths: tensor<2xi64> {train.role = #train.input<"lengths">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0:4 = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x2x12xf32>)
  %loss = nn.reduce_sum %0#0 {dimensions = array<i64: 0, 1, 2>} : (tensor<4x2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_lstm(%gates: tensor<3x2x12xf64>, %r: tensor<12x3xf64>, %bias: tensor<12xf64>, %peepholes: tensor<9xf64>, %h: tensor<2x3xf64>, %c: tensor<2x3xf64>) -> (tensor<4x2x3xf64>, tensor<2x3xf64>) attributes {
    check.inputs = [dense<[[[0.295, 0.58, 0.708, 1.062, 0.576, 1.014, -1.13, -0.083, 1.064, 0.358, 0.962, -0.928], [-0.074, -0.608, 0.105, 0.177, -1.169, -0.68, -0.529, 0.999, 0.638, -0.817, 0.713, -0.867]], [[0.282, -0.896, -1.196, 0.891, -0.697, -0.683, 1.158, 0.894, -0.506, 1.108, 0.094, 0.427], [-0.709, 1.058, 0.458, 1.12, 0.945, -0.483, -0.333, -0.802, -0.85, -1.044, -0.477, 0.247]], [[-1.192, 0.427, -0.389, -0.456, 0.764, -0.046, -0.442, -0.045, 0.491, -1.063, 1.14, -1.145], [0.6, 0.828, -1.157, 0.691, -0.321, 0.188, -1.178, -1.088, -0.766, 1.092, -0.728, 0.614]]]> : tensor<3x2x12xf64>,
                    dense<[[1.031, 1.061, -0.373], [-0.348, 0.059, 0.661], [-0.941, 0.596, 0.713], [0.863, -1.112, 1.07], [-0.981, -0.382, 0.266], [1.003, -0.384, 1.018], [0.108, -0.45, -0.44], [-0.774, -1.012, -0.843], [0.454, 1.192, -0.812], [-1.083, 1.168, 0.08], [-0.226, -0.63, 0.226], [0.783, -0.106, -0.188]]> : tensor<12x3xf64>,
                    dense<[-1.066, 0.999, -1.121, -0.015, 0.812, -0.887, 0.556, 1.08, 0.313, 0.691, -0.944, -0.157]> : tensor<12xf64>,
                    dense<[-0.842, 0.827, -0.492, -0.112, 1.198, 0.845, 1.142, -0.112, -0.028]> : tensor<9xf64>,
                    dense<[[0.551, -0.05, -0.502], [-0.231, -0.848, -0.295]]> : tensor<2x3xf64>,
                    dense<[[1.172, 1.104, 0.305], [-0.002, -0.388, -0.986]]> : tensor<2x3xf64>],
    check.results = [dense<[[[0.551, -0.05, -0.502], [-0.231, -0.848, -0.295]], [[0.534149204945362, 0.4526865233418083, 0.10005513956974431], [-0.047917748954748124, -0.10823365864149917, -0.05223270241846729]], [[0.5816653596883897, -0.02712831499783511, 0.03992557715611764], [-0.07243158436963301, -0.48764336225856236, -0.0362393434225732]], [[0.3736437888899543, 0.013510423141694605, 0.014516159453015197], [0.1486159953451607, -0.27079935972402674, -0.00805172912202579]]]> : tensor<4x2x3xf64>,
                     dense<[[0.9709367924055996, 0.018248624821297736, 0.033547819595417555], [0.201025622014569, -1.2478891151180966, -0.023341331142242232]]> : tensor<2x3xf64>]} {
  %lengths = nn.constant dense<[3, 3]> : tensor<2xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x12xf64>, tensor<12x3xf64>, tensor<12xf64>, tensor<9xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2xi64>) -> (tensor<4x2x3xf64>, tensor<2x3xf64>, tensor<4x2x3xf64>, tensor<3x2x12xf64>)
  return %states, %last : tensor<4x2x3xf64>, tensor<2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_reverse(%gates: tensor<3x2x12xf64>, %r: tensor<12x3xf64>, %bias: tensor<12xf64>, %peepholes: tensor<9xf64>, %h: tensor<2x3xf64>, %c: tensor<2x3xf64>) -> (tensor<4x2x3xf64>, tensor<2x3xf64>) attributes {
    check.inputs = [dense<[[[-0.546, 0.677, 0.882, -0.333, 0.686, 0.66, 0.467, 0.394, 0.623, -0.328, 0.491, -0.526], [-0.034, 0.647, 0.458, -0.495, 1.069, 0.359, 0.194, -1.172, 0.113, -0.598, 0.412, -0.089]], [[0.76, 0.354, 0.714, -0.365, 0.346, 0.571, 0.788, -0.36, 0.823, 0.888, 0.452, 1.143], [1.096, 0.044, 0.07, -0.801, 0.808, 1.05, -0.055, 0.459, 0.527, 0.553, -0.788, 0.673]], [[0.194, 0.397, -0.19, 0.297, 0.659, 0.328, 0.529, -1.134, -0.816, -0.141, 0.36, -0.674], [0.446, 0.314, -1.1, -0.068, -0.657, -1.07, -0.88, -0.438, -0.764, -0.736, -1.114, -0.083]]]> : tensor<3x2x12xf64>,
                    dense<[[-0.287, 0.268, 0.216], [-0.629, 0.968, -1.198], [-0.227, -0.532, -0.216], [-0.924, 0.795, -0.303], [-1.113, 0.273, -0.972], [0.109, -0.386, 0.194], [1.1, 0.764, -0.194], [0.751, 0.342, -0.313], [-0.859, 0.23, 0.153], [1.097, 1.123, 0.261], [-0.357, 0.944, -1.198], [-0.941, 0.158, 0.276]]> : tensor<12x3xf64>,
                    dense<[-0.862, 0.311, 0.939, -0.298, -0.164, -0.657, -0.5, 1.134, -0.289, 1.107, 0.993, 0.23]> : tensor<12xf64>,
                    dense<[-0.576, 1.154, -0.009, -0.203, -0.434, 1.162, -0.02, -0.513, -0.055]> : tensor<9xf64>,
                    dense<[[-0.907, 0.292, -0.136], [-0.497, 0.676, 0.784]]> : tensor<2x3xf64>,
                    dense<[[-1.168, 0.078, -0.543], [1.045, 0.677, -0.61]]> : tensor<2x3xf64>],
    check.results = [dense<[[[0.13128641127324722, 0.30524371201104866, 0.11844364173458566], [0.11629944631394645, 0.32911929373107573, 0.14970213436414093]], [[0.1766152866738362, 0.42293050481224137, 0.4138358939604951], [0.11160454845479592, 0.12010213280824858, 0.29179489398368474]], [[-0.17912585634267603, 0.5532936479849796, 0.01406685402018722], [0.23001439385909095, 0.039551068342488574, 0.0010462395366235802]], [[-0.907, 0.292, -0.136], [-0.497, 0.676, 0.784]]]> : tensor<4x2x3xf64>,
                     dense<[[0.4081247128597207, 1.8008598658345996, 0.21943041112529757], [0.45581341198215886, 0.6759854351283698, 0.2977273426938933]]> : tensor<2x3xf64>]} {
  %lengths = nn.constant dense<[3, 3]> : tensor<2xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64, reverse} : (tensor<3x2x12xf64>, tensor<12x3xf64>, tensor<12xf64>, tensor<9xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2xi64>) -> (tensor<4x2x3xf64>, tensor<2x3xf64>, tensor<4x2x3xf64>, tensor<3x2x12xf64>)
  return %states, %last : tensor<4x2x3xf64>, tensor<2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_clip(%gates: tensor<3x2x12xf64>, %r: tensor<12x3xf64>, %bias: tensor<12xf64>, %peepholes: tensor<9xf64>, %h: tensor<2x3xf64>, %c: tensor<2x3xf64>) -> (tensor<4x2x3xf64>, tensor<2x3xf64>) attributes {
    check.inputs = [dense<[[[-0.558, -0.829, 1.173, -0.496, 0.259, -0.061, 0.348, 0.249, 0.584, -0.916, 0.625, -0.478], [0.08, -0.393, -0.488, 0.072, -0.086, -0.334, 0.588, 0.218, -1.113, -0.594, -0.107, 1.0]], [[0.931, 0.109, -1.165, 0.668, -0.173, 0.182, 0.5, 0.317, -0.043, 0.988, -0.275, -0.26], [0.845, -0.728, -0.489, 0.792, -1.041, 0.807, 0.467, -0.161, -0.513, 0.674, 0.986, -0.858]], [[-0.052, 0.118, -0.006, -0.406, -0.832, 0.206, 0.748, -1.036, -0.648, 0.767, 0.7, 0.393], [-1.139, 0.534, 1.149, 1.196, 0.483, -1.083, 0.821, -0.674, 0.35, 1.085, 0.51, -0.877]]]> : tensor<3x2x12xf64>,
                    dense<[[-0.498, 1.003, -0.841], [0.265, -0.207, -0.813], [0.294, -1.095, -0.94], [-0.29, -1.027, -1.062], [0.181, 0.582, 0.908], [-0.878, -0.164, -0.445], [0.241, -0.025, 1.052], [-0.302, -1.066, 0.474], [-0.837, 0.315, 0.014], [0.985, 0.132, 0.29], [-0.568, 0.124, -0.59], [0.601, 0.041, -0.879]]> : tensor<12x3xf64>,
                    dense<[-0.637, -0.309, 0.568, -0.77, 0.512, 0.372, -0.995, 0.403, -0.981, -0.901, 0.226, -0.627]> : tensor<12xf64>,
                    dense<[0.905, -0.047, -0.424, 0.712, -1.129, 0.54, -1.071, -0.838, 1.085]> : tensor<9xf64>,
                    dense<[[0.435, -0.665, -0.921], [1.134, 0.396, 0.769]]> : tensor<2x3xf64>,
                    dense<[[-0.865, 0.3, -0.35], [-0.636, -0.4, 0.273]]> : tensor<2x3xf64>],
    check.results = [dense<[[[0.435, -0.665, -0.921], [1.134, 0.396, 0.769]], [[-0.22193081469963807, 0.14599117687073723, -0.09546370356944349], [-0.14859632157935032, -0.2694867384522295, 0.08002259853862971]], [[-0.12832827532418198, 0.1460308952818263, -0.15706843120845773], [-0.1750603354997006, -0.03570023229230964, -0.1325375627721593]], [[-0.08566504673280799, 0.12204731849098066, -0.12423457313954168], [-0.12216832981802107, 0.16198703015201119, -0.14080974016814723]]]> : tensor<4x2x3xf64>,
                     dense<[[-0.24663927334692357, 0.359112467654297, -0.1948448034445594], [-0.19782659581623888, 0.26383163498304524, -0.4205359143955548]]> : tensor<2x3xf64>]} {
  %lengths = nn.constant dense<[3, 3]> : tensor<2xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.6 : f64} : (tensor<3x2x12xf64>, tensor<12x3xf64>, tensor<12xf64>, tensor<9xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2xi64>) -> (tensor<4x2x3xf64>, tensor<2x3xf64>, tensor<4x2x3xf64>, tensor<3x2x12xf64>)
  return %states, %last : tensor<4x2x3xf64>, tensor<2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_coupled(%gates: tensor<2x2x12xf64>, %r: tensor<12x3xf64>, %bias: tensor<12xf64>, %peepholes: tensor<9xf64>, %h: tensor<2x3xf64>, %c: tensor<2x3xf64>) -> (tensor<3x2x3xf64>, tensor<2x3xf64>) attributes {
    check.inputs = [dense<[[[-0.363, -0.274, -0.873, 0.795, 0.355, 0.731, -0.16, 0.844, 0.042, 0.222, 0.176, 0.576], [-0.251, -0.967, -1.12, -0.714, -1.105, 0.934, -0.046, 0.625, -1.199, -0.072, 0.935, 0.287]], [[-0.171, -0.083, -0.961, -0.829, -0.818, -0.301, -0.274, 0.913, -0.835, -0.59, -0.534, -0.812], [-0.511, -0.636, -0.043, -1.123, 1.019, -0.314, 1.051, 0.451, 0.417, -0.068, 1.069, -0.917]]]> : tensor<2x2x12xf64>,
                    dense<[[0.405, -0.501, 0.419], [0.55, -0.808, -0.718], [-1.14, -0.647, -1.012], [-0.237, 1.137, -0.326], [-0.452, -0.077, -0.52], [0.558, 0.523, -0.808], [-0.623, 0.413, 1.057], [0.35, -0.166, 1.141], [-1.185, -1.054, 0.67], [-0.216, -1.092, 0.116], [1.175, 0.045, -0.36], [-0.975, -1.029, 0.957]]> : tensor<12x3xf64>,
                    dense<[-0.021, 1.046, -1.071, -0.616, -1.079, -0.246, -1.056, -0.587, -0.222, -0.466, -1.077, -1.11]> : tensor<12xf64>,
                    dense<[1.132, -0.769, 0.021, -0.234, 0.075, -0.998, -0.447, -0.941, 0.101]> : tensor<9xf64>,
                    dense<[[1.011, 0.236, 0.856], [-0.685, -1.158, 0.095]]> : tensor<2x3xf64>,
                    dense<[[-0.032, 0.171, -0.296], [0.3, 0.542, 0.991]]> : tensor<2x3xf64>],
    check.results = [dense<[[[1.011, 0.236, 0.856], [-0.685, -1.158, 0.095]], [[-0.15575623738220187, 0.010169084740123846, -0.20186113896507663], [0.03304319757682726, -0.022517451658919843, 0.155826490933904]], [[-0.1006833545666733, -0.08422984459526679, -0.18778001731918872], [-0.00023104482060966222, -0.036989500743158786, 0.11075196590309602]]]> : tensor<3x2x3xf64>,
                     dense<[[-0.47425234005409644, -0.6620948643719681, -0.40805813397587565], [-0.0016610839861909976, -0.080583001867873, 0.5202527977853995]]> : tensor<2x3xf64>]} {
  %lengths = nn.constant dense<[2, 2]> : tensor<2xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64, coupled} : (tensor<2x2x12xf64>, tensor<12x3xf64>, tensor<12xf64>, tensor<9xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2xi64>) -> (tensor<3x2x3xf64>, tensor<2x3xf64>, tensor<3x2x3xf64>, tensor<2x2x12xf64>)
  return %states, %last : tensor<3x2x3xf64>, tensor<2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_lengths(%gates: tensor<4x3x8xf64>, %r: tensor<8x2xf64>, %bias: tensor<8xf64>, %peepholes: tensor<6xf64>, %h: tensor<3x2xf64>, %c: tensor<3x2xf64>) -> (tensor<5x3x2xf64>, tensor<3x2xf64>) attributes {
    check.inputs = [dense<[[[-0.462, -0.122, 0.783, -0.662, -0.922, -0.452, -0.99, 0.654], [0.767, -0.449, -0.888, -1.003, -0.612, -0.998, -0.171, 0.185], [-0.611, -1.053, 0.481, -1.085, -0.72, -0.514, -0.303, -0.964]], [[-0.191, -0.447, 0.606, 0.135, 0.951, 0.37, 0.623, 0.179], [-0.139, 0.76, 0.373, 1.091, 0.547, 0.483, -0.558, 0.749], [-0.282, -0.887, -1.042, -0.794, -0.57, 0.422, -0.515, -1.048]], [[0.633, 0.137, -1.134, -1.078, -0.888, -0.343, 0.864, 1.078], [0.269, -0.645, -0.171, -0.33, -0.407, -1.17, 0.203, 0.785], [0.544, -0.971, 0.073, -0.789, 0.503, -0.129, 1.052, 0.707]], [[-0.916, -0.439, 0.996, -0.094, -0.158, -0.141, 0.642, 1.047], [0.078, 1.127, 0.23, -0.951, 0.754, -0.193, -1.074, 1.147], [-1.121, 0.185, -0.043, 0.916, -0.257, -0.683, -0.535, -0.717]]]> : tensor<4x3x8xf64>,
                    dense<[[0.15, -0.343], [0.603, -0.62], [-0.356, -0.604], [1.158, 0.817], [0.84, 0.284], [-0.238, -0.857], [0.796, -0.024], [-1.109, -0.793]]> : tensor<8x2xf64>,
                    dense<[-0.963, 0.522, 0.96, -0.722, 0.713, -0.422, 0.439, 0.871]> : tensor<8xf64>,
                    dense<[0.295, 0.721, -0.297, -1.176, 0.028, 0.208]> : tensor<6xf64>,
                    dense<[[-0.757, -0.266], [-0.439, -1.135], [-0.451, -0.281]]> : tensor<3x2xf64>,
                    dense<[[-0.057, 0.488], [-0.242, 1.158], [0.757, 1.017]]> : tensor<3x2xf64>],
    check.results = [dense<[[[-0.757, -0.266], [-0.439, -1.135], [-0.451, -0.281]], [[-0.15162909516965403, 0.02102158388878417], [-0.08162647371165628, 0.007636723454825244], [-0.451, -0.281]], [[0.021805156279455395, 0.0990493187017613], [-0.10442295737642185, 0.15184586684062185], [-0.451, -0.281]], [[0.021805156279455395, 0.0990493187017613], [0.0551447914577374, 0.0746580836270614], [-0.451, -0.281]], [[0.021805156279455395, 0.0990493187017613], [-0.06693876812595716, 0.03954718511677612], [-0.451, -0.281]]]> : tensor<5x3x2xf64>,
                     dense<[[0.026215761151790223, 0.9592011584231674], [-0.0883310936322773, 1.2497972751390527], [0.757, 1.017]]> : tensor<3x2xf64>]} {
  %lengths = nn.constant dense<[2, 4, 0]> : tensor<3xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<4x3x8xf64>, tensor<8x2xf64>, tensor<8xf64>, tensor<6xf64>, tensor<3x2xf64>, tensor<3x2xf64>, tensor<3xi64>) -> (tensor<5x3x2xf64>, tensor<3x2xf64>, tensor<5x3x2xf64>, tensor<4x3x8xf64>)
  return %states, %last : tensor<5x3x2xf64>, tensor<3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_reverse_lengths(%gates: tensor<4x3x8xf64>, %r: tensor<8x2xf64>, %bias: tensor<8xf64>, %peepholes: tensor<6xf64>, %h: tensor<3x2xf64>, %c: tensor<3x2xf64>) -> (tensor<5x3x2xf64>, tensor<3x2xf64>) attributes {
    check.inputs = [dense<[[[0.463, 0.408, 0.088, 0.717, -0.329, 0.225, 0.431, 0.053], [-0.518, -1.013, -0.991, -0.346, 0.193, 0.623, 0.515, -0.464], [1.03, -0.541, 0.519, -1.027, 0.608, 0.408, 1.097, 0.953]], [[0.45, 0.812, 0.573, 0.266, -0.699, 0.04, 0.951, -0.626], [1.139, 0.105, -0.256, -1.193, -0.264, -0.772, 0.367, 0.959], [0.984, 0.272, -0.272, -0.939, 0.453, 0.128, 0.517, -0.302]], [[0.928, -0.69, -0.467, -0.558, 0.293, 0.953, -0.798, 0.319], [0.64, -0.661, -1.05, 0.158, 0.793, 0.909, 0.547, -0.2], [-0.179, 0.069, 0.971, -0.474, -0.526, 0.253, 1.12, -0.751]], [[-1.127, -0.923, 0.15, 0.248, -0.759, -0.743, 0.227, 0.351], [0.457, 0.549, -1.053, -0.037, 0.803, 1.097, -0.436, 0.841], [0.348, 1.024, -0.65, 0.472, 0.818, -0.056, -0.958, -0.736]]]> : tensor<4x3x8xf64>,
                    dense<[[-0.824, -0.977], [-0.835, 0.278], [-0.948, 0.619], [0.567, 0.759], [0.729, 0.511], [1.018, 1.097], [0.3, 1.116], [-0.952, -0.953]]> : tensor<8x2xf64>,
                    dense<[-1.045, -0.705, -0.301, -0.099, 0.433, 0.583, -0.999, -0.232]> : tensor<8xf64>,
                    dense<[0.104, -0.3, -0.918, 0.233, -0.301, 0.441]> : tensor<6xf64>,
                    dense<[[-0.011, 1.11], [1.068, -1.027], [0.624, 0.531]]> : tensor<3x2xf64>,
                    dense<[[-0.49, -0.92], [-0.05, -0.35], [0.57, 1.004]]> : tensor<3x2xf64>],
    check.results = [dense<[[[-0.24076408644658878, -0.1291342992142291], [-0.18033718251090858, 0.030210821385980857], [0.624, 0.531]], [[-0.1288474854668432, -0.5851471069150327], [-0.3045724061592539, 0.04211291621392306], [0.624, 0.531]], [[-0.011, 1.11], [-0.14333280119142128, -0.09504066006796875], [0.624, 0.531]], [[-0.011, 1.11], [-0.046481945506210015, -0.06905352538034439], [0.624, 0.531]], [[-0.011, 1.11], [1.068, -1.027], [0.624, 0.531]]]> : tensor<5x3x2xf64>,
                     dense<[[-0.5180249576712486, -0.2587650765383785], [-0.5199182543889092, 0.08362574727225111], [0.57, 1.004]]> : tensor<3x2xf64>]} {
  %lengths = nn.constant dense<[2, 4, 0]> : tensor<3xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 2.0 : f64, reverse} : (tensor<4x3x8xf64>, tensor<8x2xf64>, tensor<8xf64>, tensor<6xf64>, tensor<3x2xf64>, tensor<3x2xf64>, tensor<3xi64>) -> (tensor<5x3x2xf64>, tensor<3x2xf64>, tensor<5x3x2xf64>, tensor<4x3x8xf64>)
  return %states, %last : tensor<5x3x2xf64>, tensor<3x2xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%gates: tensor<1x1x4xf64>, %r: tensor<4x1xf64>, %bias: tensor<4xf64>, %peepholes: tensor<3xf64>, %h: tensor<1x1xf64>, %c: tensor<1x1xf64>) -> (tensor<2x1x1xf64>, tensor<1x1xf64>) attributes {
    check.inputs = [dense<[[[-0.283, -0.503, -0.003, 0.472]]]> : tensor<1x1x4xf64>,
                    dense<[[0.694], [0.182], [-0.49], [-0.391]]> : tensor<4x1xf64>,
                    dense<[0.835, 0.046, -1.079, -0.19]> : tensor<4xf64>,
                    dense<[-0.629, 0.399, -1.024]> : tensor<3xf64>,
                    dense<[[-0.55]]> : tensor<1x1xf64>,
                    dense<[[-0.97]]> : tensor<1x1xf64>],
    check.results = [dense<[[[-0.55]], [[-0.07247235661065286]]]> : tensor<2x1x1xf64>,
                     dense<[[-0.21340595127849327]]> : tensor<1x1xf64>]} {
  %lengths = nn.constant dense<[1]> : tensor<1xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<1x1x4xf64>, tensor<4x1xf64>, tensor<4xf64>, tensor<3xf64>, tensor<1x1xf64>, tensor<1x1xf64>, tensor<1xi64>) -> (tensor<2x1x1xf64>, tensor<1x1xf64>, tensor<2x1x1xf64>, tensor<1x1x4xf64>)
  return %states, %last : tensor<2x1x1xf64>, tensor<1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_hard(%gates: tensor<3x2x8xf64>, %r: tensor<8x2xf64>, %bias: tensor<8xf64>, %peepholes: tensor<6xf64>, %h: tensor<2x2xf64>, %c: tensor<2x2xf64>) -> (tensor<4x2x2xf64>, tensor<2x2xf64>) attributes {
    check.inputs = [dense<[[[-0.054, 1.163, 0.099, -0.273, 1.041, -0.98, -0.346, 0.746], [-1.188, 0.638, -0.333, -1.161, -0.598, -0.1, -0.281, 0.04]], [[-1.072, -0.675, 1.138, -0.138, -0.067, -0.995, -0.53, 1.091], [0.449, 0.019, -1.073, -0.257, 0.668, -0.157, 0.224, 0.966]], [[0.348, 0.326, -1.113, -1.143, 0.647, -0.208, 0.898, 0.782], [0.997, -0.292, 1.198, 0.615, 0.94, -0.844, 0.674, -0.187]]]> : tensor<3x2x8xf64>,
                    dense<[[1.133, 1.186], [-0.68, -0.189], [-0.55, -0.072], [-0.512, 0.4], [-0.904, -0.794], [-0.102, -1.023], [-0.285, 0.954], [0.925, -0.728]]> : tensor<8x2xf64>,
                    dense<[-1.156, 0.788, 1.106, 0.237, -0.873, -0.632, 1.008, 1.05]> : tensor<8xf64>,
                    dense<[-1.125, -0.756, -0.17, -0.56, 0.609, -0.305]> : tensor<6xf64>,
                    dense<[[0.66, -0.835], [0.044, 1.14]]> : tensor<2x2xf64>,
                    dense<[[0.485, -0.984], [-0.934, 0.344]]> : tensor<2x2xf64>],
    check.results = [dense<[[[0.3133624749710014, 0.24523449475559886], [0.36489007843923993, 0.12684425220836287]], [[0.435964958196304, 0.23702322633924625], [0.25313367447715585, 0.18796921598150826]], [[0.2024638155442834, 0.05838287011880946], [0.5909236108483205, 0.1540769141538144]], [[0.66, -0.835], [0.044, 1.14]]]> : tensor<4x2x2xf64>,
                     dense<[[0.4679201495001178, 0.6366939026242057], [0.6204649588632851, 0.5223600759363253]]> : tensor<2x2xf64>]} {
  %lengths = nn.constant dense<[3, 3]> : tensor<2xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["hardsigmoid", "softsign", "scaledtanh"], alphas = array<f64: 0.2, 0.0, 1.7>, betas = array<f64: 0.5, 0.0, 0.6>, clip = 0.0 : f64, reverse, coupled} : (tensor<3x2x8xf64>, tensor<8x2xf64>, tensor<8xf64>, tensor<6xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2xi64>) -> (tensor<4x2x2xf64>, tensor<2x2xf64>, tensor<4x2x2xf64>, tensor<3x2x8xf64>)
  return %states, %last : tensor<4x2x2xf64>, tensor<2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_slopes(%gates: tensor<3x2x8xf64>, %r: tensor<8x2xf64>, %bias: tensor<8xf64>, %peepholes: tensor<6xf64>, %h: tensor<2x2xf64>, %c: tensor<2x2xf64>) -> (tensor<4x2x2xf64>, tensor<2x2xf64>) attributes {
    check.inputs = [dense<[[[-0.3, -0.315, -0.054, 0.196, 1.118, -0.622, 0.165, -0.569], [0.109, 0.555, -0.879, -0.045, 0.494, -1.18, 0.651, -0.195]], [[0.01, 0.265, 0.703, -1.065, 0.001, -1.108, -0.275, -0.37], [-1.149, -0.485, -0.12, 0.372, 1.02, -0.311, 0.072, 0.512]], [[1.05, 1.079, 1.171, -0.476, -0.8, 1.037, -1.014, -0.123], [0.567, 0.069, -0.267, 1.019, -0.482, 0.124, 0.791, -0.869]]]> : tensor<3x2x8xf64>,
                    dense<[[-0.358, -0.014], [0.158, -0.702], [-0.111, -1.056], [-0.989, -0.379], [-0.855, 1.122], [-0.568, -0.538], [0.681, 0.579], [-0.571, 0.79]]> : tensor<8x2xf64>,
                    dense<[0.302, -0.267, 0.309, -0.61, -0.568, 0.904, -0.147, 0.953]> : tensor<8xf64>,
                    dense<[-0.775, -0.87, -1.075, 0.575, 0.147, -1.177]> : tensor<6xf64>,
                    dense<[[-1.096, 0.778], [-0.013, 0.891]]> : tensor<2x2xf64>,
                    dense<[[-1.105, 0.213], [-0.918, 0.531]]> : tensor<2x2xf64>],
    check.results = [dense<[[[-1.096, 0.778], [-0.013, 0.891]], [[-0.09481272979660939, -4.2230024366589205e-05], [-0.15655393261996545, 0.0456886373798006]], [[0.07316655890285605, 0.02131534353033609], [0.014050635840749559, 0.007962026765062922]], [[-0.04310888275350274, -0.07341532770181966], [-0.00701151850157197, -0.007496078666267697]]]> : tensor<4x2x2xf64>,
                     dense<[[-0.41206414279548975, 0.16890264734258403], [0.26505852612472836, -0.5807761180362544]]> : tensor<2x2xf64>]} {
  %lengths = nn.constant dense<[3, 3]> : tensor<2xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["affine", "elu", "leakyrelu"], alphas = array<f64: 0.5, 0.7, 0.1>, betas = array<f64: 0.1, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<3x2x8xf64>, tensor<8x2xf64>, tensor<8xf64>, tensor<6xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2xi64>) -> (tensor<4x2x2xf64>, tensor<2x2xf64>, tensor<4x2x2xf64>, tensor<3x2x8xf64>)
  return %states, %last : tensor<4x2x2xf64>, tensor<2x2xf64>
}

// -----

// NUMBERS
func.func @numbers_many(%gates: tensor<2x17x12xf64>, %r: tensor<12x3xf64>, %bias: tensor<12xf64>, %peepholes: tensor<9xf64>, %h: tensor<17x3xf64>, %c: tensor<17x3xf64>) -> (tensor<3x17x3xf64>, tensor<17x3xf64>) attributes {
    check.inputs = [dense<[[[0.267, 0.269, -0.668, 1.078, -0.934, -1.046, 0.442, -0.977, -1.04, -0.095, 0.357, 0.941], [0.53, -1.034, 0.343, 0.825, -0.911, 0.611, -0.579, -0.483, -1.196, 0.62, 0.038, 0.965], [-0.083, -0.827, -0.681, -0.568, 1.072, -0.707, -0.988, -0.353, -1.01, -0.18, 0.292, 0.361], [-0.78, -0.867, -0.021, 0.449, -0.127, 0.176, 0.989, -0.852, -0.557, -0.015, 0.087, 0.96], [0.133, 0.39, -0.193, 0.682, 0.806, -0.495, -0.941, -0.578, -0.342, 0.935, -0.565, 0.311], [0.338, 1.095, -0.92, 0.648, -0.393, -0.953, 0.317, 0.826, 0.198, -1.08, 1.133, -0.278], [0.327, 0.538, -0.574, -0.22, -0.41, -0.97, -1.045, 0.52, -0.215, 0.887, -1.049, -0.477], [-0.768, 1.064, 0.697, 0.951, 0.015, -0.95, -0.201, -0.657, -1.135, 0.156, -0.504, -0.941], [0.028, 1.04, 1.07, -0.081, -0.953, 0.645, -0.924, 0.09, -0.999, 1.169, 0.103, -0.15], [-0.547, 0.122, 1.135, -0.173, -0.698, 0.035, 1.004, -0.284, 0.321, 1.005, -0.418, 0.746], [0.07, -0.865, -1.071, 1.054, -0.082, -0.136, 1.002, 0.178, 0.0, -0.518, 0.586, -0.585], [-0.071, 0.62, 0.252, -0.878, -0.713, 0.468, 0.55, -0.954, 1.194, -0.88, -0.798, -0.985], [-0.129, 0.287, 0.858, -0.808, 0.477, -0.947, 0.193, -0.595, -0.345, -1.074, 0.529, -0.907], [0.634, -0.392, 0.22, 0.334, -0.027, 0.897, 1.007, -0.523, -0.399, 0.905, -0.881, -0.192], [-0.205, 1.143, -0.892, 0.372, 0.617, 0.548, -1.197, 1.065, -0.45, 0.847, 0.387, -0.19], [0.81, 0.422, -0.384, 0.556, 0.012, 0.508, 0.275, 0.71, -0.818, -0.013, -1.197, 0.698], [0.652, 0.809, -1.096, 0.085, -0.051, -0.913, -0.714, 1.138, 0.846, -0.628, 0.79, 0.362]], [[-0.276, 0.347, -0.65, -0.543, -1.176, 0.376, 0.195, 0.584, 0.009, -0.156, -0.465, 0.565], [-0.305, 0.232, 0.618, -0.133, 0.447, -1.052, -0.575, 0.818, -0.846, -1.064, -1.165, 0.639], [-0.945, -0.101, -0.148, 0.727, -0.056, 0.052, -1.14, 0.709, 0.642, 0.296, 0.804, 0.274], [0.518, 0.842, 0.282, -1.151, 0.923, 1.175, -0.717, -1.041, -0.384, -0.96, -0.314, -0.986], [-0.672, -1.192, -0.171, -0.48, 0.549, -0.267, -0.802, 1.088, 0.947, 0.454, -0.679, -0.234], [-0.118, -0.219, -1.137, -0.106, 0.642, 0.464, 0.865, 0.439, 0.631, 0.89, 1.001, 0.703], [-0.201, 0.383, 0.38, 0.919, 0.513, -0.136, -0.742, -0.414, -0.599, 0.437, 0.647, -0.739], [0.08, 0.817, -0.322, -0.973, 0.253, -0.33, -0.855, -0.509, -1.183, -0.843, -0.179, -0.948], [-1.186, 0.12, 1.099, 0.802, -0.417, 1.019, -1.008, -0.839, -1.184, -1.06, 0.244, 0.617], [-0.054, 0.728, -0.117, 1.005, 0.259, 0.089, -0.79, -0.176, -0.143, 0.775, -0.649, -0.493], [0.76, -1.03, 0.089, -0.673, 0.396, 0.227, -0.974, 0.553, -0.222, -0.43, 0.856, 0.669], [-0.457, 0.427, -0.904, 0.045, -1.002, 0.338, 0.998, 0.327, -1.102, 0.032, -0.073, -0.137], [-0.837, -0.532, -0.121, -1.029, 0.419, -0.615, -0.503, -0.982, -0.474, 1.035, -0.5, -0.97], [-0.37, 1.068, -0.989, -0.378, -0.698, 0.436, -0.092, -0.964, 0.869, -0.413, 0.447, -0.113], [0.892, -1.06, -0.653, -0.515, -0.566, 0.773, 0.006, -0.368, 0.016, 0.83, 0.167, -0.117], [0.376, 0.276, -0.227, -0.177, -0.884, -0.146, 0.909, -0.466, -0.323, 0.248, 0.217, -0.779], [-0.13, 0.561, -1.101, -0.939, 0.613, 0.973, -1.038, -1.005, 0.304, -0.517, 0.376, -1.118]]]> : tensor<2x17x12xf64>,
                    dense<[[-0.104, -0.812, -0.403], [0.464, 0.024, 0.848], [0.82, 0.287, 0.834], [-0.774, -0.061, -0.433], [0.3, -0.933, 0.925], [-0.311, 0.681, 1.063], [1.057, -0.264, 0.857], [1.193, -0.888, 0.594], [0.545, -0.101, -0.533], [-0.784, -0.212, 1.037], [-0.235, -0.587, 0.287], [-0.15, 0.273, -0.109]]> : tensor<12x3xf64>,
                    dense<[-0.513, -1.115, 0.764, 0.382, -0.615, -0.002, 0.194, 0.009, 0.962, 0.669, -0.465, -0.387]> : tensor<12xf64>,
                    dense<[0.268, -0.81, 1.042, -1.091, -0.001, -0.544, 0.063, -1.091, -0.662]> : tensor<9xf64>,
                    dense<[[1.174, 0.691, -0.67], [-0.105, -1.122, -0.907], [-0.74, 1.162, -0.452], [-0.606, -1.043, -0.936], [1.189, 0.576, 1.009], [0.806, 0.678, -0.588], [-0.794, -0.552, -1.043], [-0.779, 0.528, -0.022], [-1.175, -0.469, 0.839], [0.842, 0.551, 0.555], [0.988, 0.137, -0.28], [0.176, -0.522, -1.112], [-0.576, -0.102, -0.912], [-1.007, -0.606, -0.316], [1.097, -0.031, 0.809], [0.587, 0.222, -0.427], [-0.258, -0.439, 0.322]]> : tensor<17x3xf64>,
                    dense<[[0.852, 0.697, -0.491], [-0.841, -1.179, 0.203], [-0.653, -1.187, -0.475], [-0.652, -0.707, 0.395], [0.202, -0.524, 0.553], [-0.704, 1.011, -0.915], [0.221, 0.492, 0.558], [-0.031, 0.892, 0.31], [0.458, -1.01, -0.752], [-0.082, 0.109, -0.972], [0.58, -0.368, -0.06], [0.053, 0.813, -0.475], [0.143, 0.253, 0.373], [-0.451, -0.53, -0.071], [0.242, 0.347, -0.879], [-0.129, 0.145, -0.733], [-0.955, 1.029, -1.15]]> : tensor<17x3xf64>],
    check.results = [dense<[[[1.174, 0.691, -0.67], [-0.105, -1.122, -0.907], [-0.74, 1.162, -0.452], [-0.606, -1.043, -0.936], [1.189, 0.576, 1.009], [0.806, 0.678, -0.588], [-0.794, -0.552, -1.043], [-0.779, 0.528, -0.022], [-1.175, -0.469, 0.839], [0.842, 0.551, 0.555], [0.988, 0.137, -0.28], [0.176, -0.522, -1.112], [-0.576, -0.102, -0.912], [-1.007, -0.606, -0.316], [1.097, -0.031, 0.809], [0.587, 0.222, -0.427], [-0.258, -0.439, 0.322]], [[0.19084670421766278, -0.00018483758195790874, -0.010984562706864433], [0.1733370767422119, -0.14708292261122882, 0.06635792558905472], [0.003387016030809661, -0.07845069064547625, -0.06014901594133734], [-0.13615790824703128, -0.08124604436381637, 0.06773683735422538], [0.11087353797919743, -0.5736965479537667, 0.07698443050845372], [-0.5200738099390022, 0.0493303133599024, -0.23212167520435992], [0.34777489775910203, 0.006330812384785899, 0.015052151216953902], [0.11298054473800732, -0.031343252280936436, -0.22920564568160035], [0.28873585563954024, -0.12264912880194397, -0.4765497123427892], [0.01519858283884295, -0.07801709238715698, -0.38667766572652246], [0.13331902426916198, -0.105173710672279, -0.1840832527650895], [-0.2652671558990556, 0.0017732259994987047, -0.22459730073768483], [-0.19550160484766851, 0.00768761899350633, -0.04968923479826785], [0.31196370780616994, -0.08640135868970791, -0.15782125716896567], [0.11177768321284086, 0.19094655135039754, -0.6760439719508518], [-0.1694417811657966, -0.046976947740906105, -0.21962375859427108], [-0.03685174502350907, 0.31448942209550507, -0.3532660387357526]], [[0.10598278879407169, -0.03693672898210136, 0.018056387911870943], [-0.017810346107536058, -0.4428308443770737, 0.06336412027140612], [0.1069574464502265, -0.06348666251912796, -0.09288930119440035], [-0.037459361903518854, -0.2133463689755638, -0.3634756283791059], [0.14065146385588395, -0.5290314216233065, -0.1290500077444866], [-0.08706075818589637, 0.07327370747343785, -0.48411038572508786], [0.2942574358892675, 0.028226931290907278, -0.27698080622930876], [-0.0601080904030904, -0.11755290002922954, -0.26136013713299333], [-0.002310207359479433, -0.05706914607683791, -0.1499362842484115], [0.24990258165747192, -0.15462096702493652, -0.3275723661549662], [0.01944536355347811, -0.0939077259453242, -0.12041846228863459], [-0.11021882620305351, -0.01619254634659203, -0.31748583889146154], [0.02949038412073891, -0.04108735510323195, -0.25506234707957165], [0.08246962524208992, -0.03369744112466854, -0.2370904465855316], [0.1843384891580277, 0.004573496460928459, -0.5311738444917424], [0.09348697548406672, -0.020138341239188964, -0.28754335797417224], [-0.038593549107323585, 0.00018247304605329396, -0.6413553046133508]]]> : tensor<3x17x3xf64>,
                     dense<[[0.3201671365024529, -0.25339969047281, 0.0316369980848895], [-0.033437659988600085, -1.2562882368405712, 0.3060040975359447], [0.1483663740208339, -0.1875387668928606, -0.18491644989359962], [-0.10434957936176939, -0.3717295104915914, -0.478690668509007], [0.4395040443829177, -1.1777694858780574, -0.3394358761208748], [-0.1227198564209675, 0.18352449910356797, -0.8425299247002132], [0.5248806909487014, 0.056223986556895984, -0.5887573823650302], [-0.15197395533327382, -0.3243346797410209, -0.6915140685398867], [-0.0030217694427543407, -0.26673790189510876, -0.2484236146815311], [0.3393635706705993, -0.480496734245192, -0.7651292361931039], [0.04734446134237612, -0.21798907606615825, -0.23983727537202196], [-0.15629191130211628, -0.12574927518168036, -0.5657531166936061], [0.08148084541408908, -0.09728327562224118, -0.6629573108528947], [0.20717526498880137, -0.15672777994223408, -0.4297839472345737], [0.5491761088230667, 0.03676780762217489, -1.0656763302500623], [0.1677734976600283, -0.13213743052063587, -0.6566208866138568], [-0.09071523646862531, 0.0005262002657808462, -1.0909439248259452]]> : tensor<17x3xf64>]} {
  %lengths = nn.constant dense<[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]> : tensor<17xi64>
  %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64} : (tensor<2x17x12xf64>, tensor<12x3xf64>, tensor<12xf64>, tensor<9xf64>, tensor<17x3xf64>, tensor<17x3xf64>, tensor<17xi64>) -> (tensor<3x17x3xf64>, tensor<17x3xf64>, tensor<3x17x3xf64>, tensor<2x17x12xf64>)
  return %states, %last : tensor<3x17x3xf64>, tensor<17x3xf64>
}
