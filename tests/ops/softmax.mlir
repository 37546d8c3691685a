// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// softmax-c1
func.func @softmax_c1(%x: tensor<f32>) {
  // expected-error@+2 {{rank is at least 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.softmax %x : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// softmax-c1
func.func @float(%x: tensor<3xi64>) {
  // expected-error@+1 {{must be}}
  %0 = nn.softmax %x : (tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[SOFTMAX:.*]] = nn.softmax %arg0
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[SOFTMAX]], %arg1
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %arg1, %[[SOFTMAX]]
// CHECK-NEXT: %[[REDUCE_SUM2:.*]] = nn.reduce_sum %[[MUL2]] {dimensions = array<i64: 1>}
// CHECK-NEXT: %[[BROADCAST:.*]] = nn.broadcast %[[REDUCE_SUM2]] {dimensions = array<i64: 0>}
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %arg1, %[[BROADCAST]]
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %[[SUB]], %[[SOFTMAX]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL3]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.softmax %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<3x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299, 1.409], [-1.572, -0.891, 1.937, 0.55, -1.898], [0.142, 2.087, -0.432, -1.705, 1.165]]> : tensor<3x5xf64>],
    check.results = [dense<[[0.4463709340439242, 0.029024790134175634, 0.01235610529805977, 0.2420514476213278, 0.2701967229025124], [0.021997210093413048, 0.04346324469489747, 0.735033172892161, 0.18362867196507768, 0.015877700354450842], [0.08698574791897494, 0.608346297580011, 0.0489962756565044, 0.013718486299849262, 0.2419531925446604]]> : tensor<3x5xf64>]} {
  %y = nn.softmax %x : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_vector(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[1.911, -0.822, -1.676, 1.299, 1.409, -1.572, -0.891]> : tensor<7xf64>],
    check.results = [dense<[0.42887293911056085, 0.027887001824106673, 0.011871738930512464, 0.23256289296630073, 0.25960485742075523, 0.013172886917935658, 0.026027682829828244]> : tensor<7xf64>]} {
  %y = nn.softmax %x : (tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_rank_four(%x: tensor<2x1x3x3xf64>) -> tensor<2x1x3x3xf64> attributes {
    check.inputs = [dense<[[[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55]]], [[[-1.898, 0.142, 2.087], [-0.432, -1.705, 1.165], [1.721, -1.27, -1.033]]]]> : tensor<2x1x3x3xf64>],
    check.results = [dense<[[[[0.9151599380433322, 0.05950729116761685, 0.025332770789050853], [0.46021015488991934, 0.5137225037060975, 0.02606734140398319], [0.04517421400488513, 0.7639684079274086, 0.1908573780677061]]], [[[0.016006172318924053, 0.12309721607475971, 0.8608966116063161], [0.16081860573997883, 0.045027664042703246, 0.7941537302173178], [0.897738729514536, 0.045099857140192705, 0.05716141334527145]]]]> : tensor<2x1x3x3xf64>]} {
  %y = nn.softmax %x : (tensor<2x1x3x3xf64>) -> tensor<2x1x3x3xf64>
  return %y : tensor<2x1x3x3xf64>
}

// -----

// NUMBERS
// exp(1000) overflows: the rows are shifted.
func.func @numbers_large(%x: tensor<2x3xf64>) -> tensor<2x3xf64> attributes {
    check.inputs = [dense<[[1000.0, 999.0, 998.0], [-1000.5, -1001.0, -1002.0]]> : tensor<2x3xf64>],
    check.results = [dense<[[0.6652409557748218, 0.2447284710547976, 0.09003057317038045], [0.5465493872661796, 0.3314989604240915, 0.12195165230972885]]> : tensor<2x3xf64>]} {
  %y = nn.softmax %x : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}

// -----

// NUMBERS
// A mask of -inf gives neither NaN nor a gradient.
func.func @numbers_masked(%x: tensor<2x3xf64>) -> tensor<2x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572]]> : tensor<2x3xf64>],
    check.results = [dense<[[0.9730643623803299, 0.0, 0.026935637619669967], [1.0, 0.0, 0.0]]> : tensor<2x3xf64>]} {
  %mask = nn.constant dense<[[true, false, true], [true, false, false]]> : tensor<2x3xi1>
  %low = nn.constant dense<0xFFF0000000000000> : tensor<2x3xf64>
  %masked = nn.select %mask, %x, %low : (tensor<2x3xi1>, tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %y = nn.softmax %masked : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}

// -----

// NUMBERS
func.func @numbers_added_mask(%x: tensor<2x3xf64>) -> tensor<2x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572]]> : tensor<2x3xf64>],
    check.results = [dense<[[0.9730643623803299, 0.0, 0.026935637619669967], [1.0, 0.0, 0.0]]> : tensor<2x3xf64>]} {
  %mask = nn.constant dense<[[0.0, -3.4028234663852886e+38, 0.0], [0.0, -3.4028234663852886e+38, -3.4028234663852886e+38]]> : tensor<2x3xf64>
  %masked = nn.add %mask, %x : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %y = nn.softmax %masked : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}

// -----

// NUMBERS
// A row that is masked throughout, as attention over padding: zeros, and a gradient of zero.
func.func @numbers_masked_rows(%x: tensor<3x3xf64>) -> tensor<3x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [0.5, 0.25, -0.75]]> : tensor<3x3xf64>],
    check.results = [dense<[[0.9730643623803299, 0.0, 0.026935637619669967], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]> : tensor<3x3xf64>]} {
  %mask = nn.constant dense<[[true, false, true], [false, false, false], [false, true, false]]> : tensor<3x3xi1>
  %low = nn.constant dense<0xFFF0000000000000> : tensor<3x3xf64>
  %masked = nn.select %mask, %x, %low : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %y = nn.softmax %masked {masked_to_zero} : (tensor<3x3xf64>) -> tensor<3x3xf64>
  return %y : tensor<3x3xf64>
}
