// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// matmul-c1
func.func @matmul_c1(%a: tensor<3xf32>, %b: tensor<3xf32>) {
  // expected-error@+2 {{operands have one rank, at least 2, and one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

// matmul-c2
func.func @matmul_c2(%a: tensor<2x3x4xf32>, %b: tensor<1x4x5xf32>) {
  // expected-error@+2 {{batch dimensions are equal}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<2x3x4xf32>, tensor<1x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

// matmul-c3
func.func @matmul_c3(%a: tensor<3x4xf32>, %b: tensor<3x5xf32>) {
  // expected-error@+2 {{contracted sizes are equal, found 4 and 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[MATMUL:.*]] = nn.matmul %arg0, %arg1
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[MATMUL]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MATMUL2:.*]] = nn.matmul %arg2, %arg1 {transpose_b}
// CHECK-NEXT: %[[MATMUL3:.*]] = nn.matmul %arg0, %arg2 {transpose_a}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MATMUL2]], %[[MATMUL3]]
func.func @model(%a: tensor<3x4xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<4x5xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<3x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.matmul %a, %b : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[MATMUL:.*]] = nn.matmul %arg0, %arg1 {transpose_b}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[MATMUL]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MATMUL2:.*]] = nn.matmul %arg2, %arg1
// CHECK-NEXT: %[[MATMUL3:.*]] = nn.matmul %arg2, %arg0 {transpose_a}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MATMUL2]], %[[MATMUL3]]
func.func @model(%a: tensor<3x4xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<5x4xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<3x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.matmul %a, %b {transpose_b} : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[MATMUL:.*]] = nn.matmul %arg0, %arg1 {transpose_a}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[MATMUL]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MATMUL2:.*]] = nn.matmul %arg1, %arg2 {transpose_b}
// CHECK-NEXT: %[[MATMUL3:.*]] = nn.matmul %arg0, %arg2
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MATMUL2]], %[[MATMUL3]]
func.func @model(%a: tensor<4x3xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<4x5xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<3x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.matmul %a, %b {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[MATMUL:.*]] = nn.matmul %arg0, %arg1 {transpose_a, transpose_b}
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[MATMUL]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MATMUL2:.*]] = nn.matmul %arg1, %arg2 {transpose_a, transpose_b}
// CHECK-NEXT: %[[MATMUL3:.*]] = nn.matmul %arg2, %arg0 {transpose_a, transpose_b}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MATMUL2]], %[[MATMUL3]]
func.func @model(%a: tensor<4x3xf32> {train.role = #train.parameter<"a">},
                 %b: tensor<5x4xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<3x5xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.matmul %a, %b {transpose_a, transpose_b} : (tensor<4x3xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
  %weighted = nn.mul %y, %weight : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_plain(%a: tensor<3x4xf64>, %b: tensor<4x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299], [1.409, -1.572, -0.891, 1.937], [0.55, -1.898, 0.142, 2.087]]> : tensor<3x4xf64>,
                    dense<[[1.227, -1.714, -0.763, 1.956, 0.327], [-1.95, 0.288, 2.011, -0.649, -1.663], [1.28, 1.559, -1.434, -0.919, 1.964], [0.729, -1.813, 0.1, 2.171, -0.253]]> : tensor<4x5xf64>],
    check.results = [dense<[[2.7493879999999997, -8.480160999999999, -0.577851, 8.631767, -1.6284279999999998], [5.065835999999999, -7.768612, -2.764965, 8.800288, 0.8349939999999998], [6.079133, -5.051677, -4.231456, 6.707981, 3.0871009999999997]]> : tensor<3x5xf64>]} {
  %y = nn.matmul %a, %b : (tensor<3x4xf64>, tensor<4x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_transpose_b(%a: tensor<3x4xf64>, %b: tensor<5x4xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676, 1.299], [1.409, -1.572, -0.891, 1.937], [0.55, -1.898, 0.142, 2.087]]> : tensor<3x4xf64>,
                    dense<[[1.227, -1.714, -0.763, 1.956], [0.327, -1.95, 0.288, 2.011], [-0.649, -1.663, 1.28, 1.559], [-1.434, -0.919, 1.964, 0.729], [-1.813, 0.1, 2.171, -0.253]]> : tensor<5x4xf64>],
    check.results = [dense<[[7.573337, 4.357398, 0.006607999999999059, -4.329649, -7.514086], [8.891856, 7.164842, 3.579098, -0.9136890000000002, -5.136139], [7.901847999999999, 8.118803, 6.2348170000000005, 2.7558730000000002, -1.4066790000000002]]> : tensor<3x5xf64>]} {
  %y = nn.matmul %a, %b {transpose_b} : (tensor<3x4xf64>, tensor<5x4xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_transpose_a(%a: tensor<4x3xf64>, %b: tensor<4x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087]]> : tensor<4x3xf64>,
                    dense<[[1.227, -1.714, -0.763, 1.956, 0.327], [-1.95, 0.288, 2.011, -0.649, -1.663], [1.28, 1.559, -1.434, -0.919, 1.964], [0.729, -1.813, 0.1, 2.171, -0.253]]> : tensor<4x5xf64>],
    check.results = [dense<[[-2.7123749999999993, -0.8493370000000002, 2.24209, -0.4068639999999992, -2.8050699999999997], [-1.1732659999999997, 4.577037, 0.697227, -3.9940940000000005, 1.156381], [3.2343710000000003, -0.5063530000000003, -2.4625040000000005, 1.7673990000000006, 2.618373]]> : tensor<3x5xf64>]} {
  %y = nn.matmul %a, %b {transpose_a} : (tensor<4x3xf64>, tensor<4x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_transpose_a_transpose_b(%a: tensor<4x3xf64>, %b: tensor<5x4xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087]]> : tensor<4x3xf64>,
                    dense<[[1.227, -1.714, -0.763, 1.956], [0.327, -1.95, 0.288, 2.011], [-0.649, -1.663, 1.28, 1.559], [-1.434, -0.919, 1.964, 0.729], [-1.813, 0.1, 2.171, -0.253]]> : tensor<5x4xf64>],
    check.results = [dense<[[-2.9143439999999994, -5.9816389999999995, -7.499938, -7.067721000000001, -4.78891], [-4.623799000000001, -2.172926, 0.8910490000000001, 3.7916629999999993, 5.8004869999999995], [4.300478, 6.872705, 7.659592999999999, 6.449675000000001, 3.547427]]> : tensor<3x5xf64>]} {
  %y = nn.matmul %a, %b {transpose_a, transpose_b} : (tensor<4x3xf64>, tensor<5x4xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_batch(%a: tensor<2x1x3x2xf64>, %b: tensor<2x1x5x2xf64>) -> tensor<2x1x3x5xf64> attributes {
    check.inputs = [dense<[[[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572]]], [[[-0.891, 1.937], [0.55, -1.898], [0.142, 2.087]]]]> : tensor<2x1x3x2xf64>,
                    dense<[[[[1.227, -1.714], [-0.763, 1.956], [0.327, -1.95], [0.288, 2.011], [-0.649, -1.663]]], [[[1.28, 1.559], [-1.434, -0.919], [1.964, 0.729], [-1.813, 0.1], [2.171, -0.253]]]]> : tensor<2x1x5x2xf64>],
    check.results = [dense<[[[[3.753705, -3.065925, 2.227797, -1.102674, 0.12674699999999994], [-4.282938, 3.819632, -3.0811019999999996, 2.129601, -1.072513], [4.4232510000000005, -4.1498990000000004, 3.526143, -2.7555000000000005, 1.699795]]], [[[1.879303, -0.5024090000000003, -0.3378510000000001, 1.809083, -2.424422], [-2.2549819999999996, 0.9555619999999999, -0.30344199999999977, -1.1869500000000002, 1.674244], [3.4353930000000004, -2.1215810000000004, 1.8003110000000002, -0.04874599999999993, -0.21972900000000006]]]]> : tensor<2x1x3x5xf64>]} {
  %y = nn.matmul %a, %b {transpose_b} : (tensor<2x1x3x2xf64>, tensor<2x1x5x2xf64>) -> tensor<2x1x3x5xf64>
  return %y : tensor<2x1x3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_batch_both(%a: tensor<3x2x3xf64>, %b: tensor<3x1x2xf64>) -> tensor<3x3x1xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572]], [[-0.891, 1.937, 0.55], [-1.898, 0.142, 2.087]], [[-0.432, -1.705, 1.165], [1.721, -1.27, -1.033]]]> : tensor<3x2x3xf64>,
                    dense<[[[1.227, -1.714]], [[-0.763, 1.956]], [[0.327, -1.95]]]> : tensor<3x1x2xf64>],
    check.results = [dense<[[[0.11831100000000028], [-3.42362], [0.637956]], [[-3.0326549999999997], [-1.200179], [3.662522]], [[-3.497214], [1.918965], [2.395305]]]> : tensor<3x3x1xf64>]} {
  %y = nn.matmul %a, %b {transpose_a, transpose_b} : (tensor<3x2x3xf64>, tensor<3x1x2xf64>) -> tensor<3x3x1xf64>
  return %y : tensor<3x3x1xf64>
}

// -----

// NUMBERS
func.func @numbers_ones(%a: tensor<1x1xf64>, %b: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[1.911]]> : tensor<1x1xf64>,
                    dense<[[1.227]]> : tensor<1x1xf64>],
    check.results = [dense<[[2.3447970000000002]]> : tensor<1x1xf64>]} {
  %y = nn.matmul %a, %b : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_outer(%a: tensor<3x1xf64>, %b: tensor<1x5xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911], [-0.822], [-1.676]]> : tensor<3x1xf64>,
                    dense<[[1.227, -1.714, -0.763, 1.956, 0.327]]> : tensor<1x5xf64>],
    check.results = [dense<[[2.3447970000000002, -3.275454, -1.458093, 3.737916, 0.624897], [-1.008594, 1.4089079999999998, 0.627186, -1.607832, -0.268794], [-2.056452, 2.872664, 1.278788, -3.278256, -0.548052]]> : tensor<3x5xf64>]} {
  %y = nn.matmul %a, %b : (tensor<3x1xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

// -----

// NUMBERS
func.func @numbers_same_operand(%a: tensor<3x3xf64>) -> tensor<3x3xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822, -1.676], [1.299, 1.409, -1.572], [-0.891, 1.937, 0.55]]> : tensor<3x3xf64>],
    check.results = [dense<[[7.136581, 3.958863, -4.216715], [3.958863, 6.143866, 0.7072240000000002], [-4.216715, 0.7072240000000002, 4.848350000000001]]> : tensor<3x3xf64>]} {
  %y = nn.matmul %a, %a {transpose_b} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %y : tensor<3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_broadcast(%a: tensor<2x3x2xf64>, %b: tensor<2x3xf64>) -> tensor<2x3x3xf64> attributes {
    check.inputs = [dense<[[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572]], [[-0.891, 1.937], [0.55, -1.898], [0.142, 2.087]]]> : tensor<2x3x2xf64>,
                    dense<[[1.227, -1.714, -0.763], [1.956, 0.327, -1.95]]> : tensor<2x3xf64>],
    check.results = [dense<[[[0.7369650000000003, -3.5442479999999996, 0.14480699999999969], [0.4843919999999997, 3.297437, -1.2542619999999998], [-1.345989, -2.9290700000000003, 1.990333]], [[2.6955150000000003, 2.1605730000000003, -3.0973170000000003], [-3.0376379999999994, -1.5633460000000001, 3.28145], [4.256406, 0.43906100000000015, -4.177996]]]> : tensor<2x3x3xf64>]} {
  %w = nn.broadcast %b {dimensions = array<i64: 1, 2>} : (tensor<2x3xf64>) -> tensor<2x2x3xf64>
  %y = nn.matmul %a, %w : (tensor<2x3x2xf64>, tensor<2x2x3xf64>) -> tensor<2x3x3xf64>
  return %y : tensor<2x3x3xf64>
}

// -----

// NUMBERS
func.func @numbers_transposed_operand(%a: tensor<3x2xf64>, %b: tensor<5x2xf64>) -> tensor<3x5xf64> attributes {
    check.inputs = [dense<[[1.911, -0.822], [-1.676, 1.299], [1.409, -1.572]]> : tensor<3x2xf64>,
                    dense<[[1.227, -1.714], [-0.763, 1.956], [0.327, -1.95], [0.288, 2.011], [-0.649, -1.663]]> : tensor<5x2xf64>],
    check.results = [dense<[[3.753705, -3.065925, 2.227797, -1.102674, 0.12674699999999994], [-4.282938, 3.819632, -3.0811019999999996, 2.129601, -1.072513], [4.4232510000000005, -4.1498990000000004, 3.526143, -2.7555000000000005, 1.699795]]> : tensor<3x5xf64>]} {
  %t = nn.transpose %b {permutation = array<i64: 1, 0>} : (tensor<5x2xf64>) -> tensor<2x5xf64>
  %y = nn.matmul %a, %t : (tensor<3x2xf64>, tensor<2x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
