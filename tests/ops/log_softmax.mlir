// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// log_softmax-c1
func.func @log_softmax_c1(%x: tensor<f32>) {
  // expected-error@+2 {{rank is at least 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.log_softmax %x : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// log_softmax-c1
func.func @float(%x: tensor<3xi64>) {
  // expected-error@+1 {{must be}}
  %0 = nn.log_softmax %x : (tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[LOG_SOFTMAX:.*]] = nn.log_softmax %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[LOG_SOFTMAX]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %arg1 {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %[[REDUCE_SUM2]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[EXP:.*]] = nn.exp %[[LOG_SOFTMAX]]
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[EXP]], %[[BROADCAST]]
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %arg1, %[[MUL2]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[SUB]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.log_softmax %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<3x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[[-0.8066049819436802, -3.5396049819436803, -4.39360498194368, -1.4186049819436803, -1.3086049819436802], [-3.816839647601159, -3.1358396476011587, -0.3078396476011584, -1.6948396476011585, -4.142839647601158], [-2.4420109907703043, -0.49701099077030386, -3.016010990770304, -4.289010990770304, -1.4190109907703041]]> : tensor<3x5xf64>]} {
  %y = nn.log_softmax %x : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_vector(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891]> : tensor<7xf64>],
    check.results = [dense<[-0.8465945831533124, -3.5795945831533125, -4.433594583153312, -1.4585945831533125, -1.3485945831533124, -4.3295945831533125, -3.6485945831533124]> : tensor<7xf64>]} {
  %y = nn.log_softmax %x : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_rank_four(%x: tensor<2x1x3x3xf64>) -> tensor<2x1x3x3xf64> attributes {
    check.inputs = [dense<[[[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55]]], [[[-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165], [1.721, -1.27, -1.033]]]]> : tensor<2x1x3x3xf64>],
    check.results = [dense<[[[[-0.08865643330582701, -2.821656433305827, -3.675656433305827], [-0.7760720353707004, -0.6660720353707003, -3.6470720353707002], [-3.0972288415509435, -0.269228841550943, -1.656228841550943]]], [[[-4.134780861199692, -2.094780861199692, -0.14978086119969172], [-1.827478221592672, -3.100478221592672, -0.230478221592672], [-0.10787620010174295, -3.098876200101743, -2.861876200101743]]]]> : tensor<2x1x3x3xf64>]} {
  %y = nn.log_softmax %x : (tensor<2x1x3x3xf64>) -> tensor<2x1x3x3xf64>
  return %y : tensor<2x1x3x3xf64>
}

// -----

// NUMBERS
// exp(1000) overflows: the rows are shifted.
func.func @numbers_large(%x: tensor<2x3xf64>) -> tensor<2x3xf64> attributes {
    check.inputs = [dense<[[1000.0, 999.0, -1000.0], [-1000.5, -1001.0, -1002.0]]> : tensor<2x3xf64>],
    check.results = [dense<[[-0.31326168751822286, -1.3132616875182228, -2000.3132616875182], [-0.6041306053367284, -1.1041306053367284, -2.1041306053367284]]> : tensor<2x3xf64>]} {
  %y = nn.log_softmax %x : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}
