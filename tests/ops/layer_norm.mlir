// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// layer_norm-c1
func.func @layer_norm_c1(%x: tensor<f32>) {
  // expected-error@+2 {{rank is at least 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.layer_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// layer_norm-c1
func.func @epsilon(%x: tensor<3xf32>) {
  // expected-error@+2 {{epsilon is not negative}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.layer_norm %x {epsilon = -1.0 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// layer_norm-c1
func.func @float(%x: tensor<3xi64>) {
  // expected-error@+1 {{must be}}
  %0 = nn.layer_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<9.99999974E-6> : tensor<2xf32>
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<3.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %[[LAYER_NORM:.*]] = nn.layer_norm %arg0 {epsilon = 1.000000e-05 : f64}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[LAYER_NORM]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %arg0 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[DIV:.*]] = nn.div %[[REDUCE_SUM2]], %[[CONSTANT2]]
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %[[DIV]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %arg0, %[[BROADCAST]]
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[SUB]], %[[SUB]]
// CHECK-NEXT: %[[REDUCE_SUM3:.*]] = nn.reduce_sum %[[MUL2]] {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[DIV2:.*]] = nn.div %[[REDUCE_SUM3]], %[[CONSTANT2]]
// CHECK-NEXT: %[[ADD:.*]] = nn.add %[[DIV2]], %[[CONSTANT]]
// CHECK-NEXT: %[[RSQRT:.*]] = nn.rsqrt %[[ADD]]
// CHECK-NEXT: %[[BROADCAST2:.*]] = nn.broadcast %[[RSQRT]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %[[SUB]], %[[BROADCAST2]]
// CHECK-NEXT: %[[REDUCE_SUM4:.*]] = nn.reduce_sum %arg1 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[DIV3:.*]] = nn.div %[[REDUCE_SUM4]], %[[CONSTANT2]]
// CHECK-NEXT: %[[MUL4:.*]] = nn.mul %arg1, %[[MUL3]]
// CHECK-NEXT: %[[REDUCE_SUM5:.*]] = nn.reduce_sum %[[MUL4]] {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[DIV4:.*]] = nn.div %[[REDUCE_SUM5]], %[[CONSTANT2]]
// CHECK-NEXT: %[[BROADCAST3:.*]] = nn.broadcast %[[DIV4]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[MUL5:.*]] = nn.mul %[[MUL3]], %[[BROADCAST3]]
// CHECK-NEXT: %[[BROADCAST4:.*]] = nn.broadcast %[[DIV3]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[SUB2:.*]] = nn.sub %arg1, %[[BROADCAST4]]
// CHECK-NEXT: %[[SUB3:.*]] = nn.sub %[[SUB2]], %[[MUL5]]
// CHECK-NEXT: %[[MUL6:.*]] = nn.mul %[[SUB3]], %[[BROADCAST2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL6]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.layer_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<3x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[[1.0561116305685436, -0.8852073675104379, -1.4918251590799405, 0.6213925574531624, 0.6995283385686721], [-0.8374029558849928, -0.36106532394573443, 1.6170298641955614, 0.6468679031092894, -1.0654294874741237], [-0.08385346829530221, 1.4069600219639569, -0.523815907065901, -1.4995514202278735, 0.7002607736251204]]> : tensor<3x5xf64>]} {
  %y = nn.layer_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_vector(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891]> : tensor<7xf64>],
    check.results = [dense<[1.3497871559460815, -0.5324767175435668, -1.1206411331894357, 0.9282922819703533, 1.0040511645476902, -1.0490145532981356, -0.5799981984329872]> : tensor<7xf64>]} {
  %y = nn.layer_norm %x {epsilon = 1.000000e-01 : f64} : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_rank_three(%x: tensor<2x1x3xf64>) -> tensor<2x1x3xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676]], [[1.299, 1.409, -1.572]]]> : tensor<2x1x3xf64>],
    check.results = [dense<[[[1.376999000873242, -0.4093957472532946, -0.9676032536199474]], [[0.6668772420617337, 0.7465836853360446, -1.4134609273977783]]]> : tensor<2x1x3xf64>]} {
  %y = nn.layer_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<2x1x3xf64>) -> tensor<2x1x3xf64>
  return %y : tensor<2x1x3xf64>
}

// -----

// NUMBERS
func.func @numbers_scaled(%x: tensor<3x5xf64>, %scale: tensor<5xf64>, %shift: tensor<5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>,
                    dense<[1.227, -1.714, -0.763, 1.956, 0.327]> : tensor<5xf64>,
                    dense<[0.102, -1.984, 0.432, 1.918, -0.859]> : tensor<5xf64>],
    check.results = [dense<[[1.3978489707076032, -0.46675457208710935, 1.5702625963779946, 3.1334438423783855, -0.6302542332880442], [-0.9254934268708862, -1.3651340347570113, -0.8017937863812135, 3.18327361848177, -1.2073954424040385], [-0.0008882055983358284, -4.395529477646222, 0.8316715370912824, -1.0151225779657207, -0.6300147270245856]]> : tensor<3x5xf64>]} {
  %n = nn.layer_norm %x {epsilon = 1.000000e-05 : f64} : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %s = nn.broadcast %scale {dimensions = array<i64: 1>} : (tensor<5xf64>) -> tensor<3x5xf64>
  %b = nn.broadcast %shift {dimensions = array<i64: 1>} : (tensor<5xf64>) -> tensor<3x5xf64>
  %m = nn.mul %n, %s : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  %y = nn.add %m, %b : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
