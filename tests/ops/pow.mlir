// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%x: tensor<3xf32>, %e: tensor<4xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.pow %x, %e : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%x: tensor<3xf32>, %e: tensor<3xf64>) {
  // expected-error@+2 {{operands have one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.pow %x, %e : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[CONSTANT2:.*]] = nn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[CONSTANT:.*]] = nn.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK-NEXT: %[[POW:.*]] = nn.pow %arg0, %arg1
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[POW]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[CONSTANT_POWER:.*]] = nn.equal %arg1, %[[CONSTANT]]
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %arg2, %arg1
// CHECK-NEXT: %[[SUB:.*]] = nn.sub %arg1, %[[CONSTANT2]]
// CHECK-NEXT: %[[POW2:.*]] = nn.pow %arg0, %[[SUB]]
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %[[MUL2]], %[[POW2]]
// CHECK-NEXT: %[[BASE:.*]] = nn.select %[[CONSTANT_POWER]], %[[CONSTANT]], %[[MUL3]]
// CHECK-NEXT: %[[GREATER:.*]] = nn.greater %arg0, %[[CONSTANT]]
// CHECK-NEXT: %[[MUL4:.*]] = nn.mul %arg2, %[[POW]]
// CHECK-NEXT: %[[SELECT:.*]] = nn.select %[[GREATER]], %arg0, %[[CONSTANT2]]
// CHECK-NEXT: %[[LOG:.*]] = nn.log %[[SELECT]]
// CHECK-NEXT: %[[MUL5:.*]] = nn.mul %[[MUL4]], %[[LOG]]
// CHECK-NEXT: %[[SELECT2:.*]] = nn.select %[[GREATER]], %[[MUL5]], %[[CONSTANT]]
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[BASE]], %[[SELECT2]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">}, %e: tensor<2x3xf32> {train.role = #train.parameter<"e">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.pow %x, %e : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%x: tensor<7xf64>, %e: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[0.125, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0]> : tensor<7xf64>, dense<[1.5, -0.75, 2.0, -1.25, 0.5, -3.0, 0.625]> : tensor<7xf64>],
    check.results = [dense<[0.04419417382415922, 1.681792830507429, 0.5625, 1.0, 1.224744871391589, 0.064, 2.378414230005442]> : tensor<7xf64>]} {
  %y = nn.pow %x, %e : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%x: tensor<1x1xf64>, %e: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[1.5]]> : tensor<1x1xf64>, dense<[[0.5]]> : tensor<1x1xf64>],
    check.results = [dense<[[1.224744871391589]]> : tensor<1x1xf64>]} {
  %y = nn.pow %x, %e : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_same_operand(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[0.125, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0]> : tensor<7xf64>],
    check.results = [dense<[0.7711054127039704, 0.7071067811865476, 0.8059274488676564, 1.0, 1.8371173070873836, 9.882117688026186, 256.0]> : tensor<7xf64>]} {
  %y = nn.pow %x, %x : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
// A constant exponent takes bases of either sign.
func.func @numbers_fourth(%x: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[-2.0, -0.5, 0.25, 1.5, 3.0]> : tensor<5xf64>],
    check.results = [dense<[16.0, 0.0625, 0.00390625, 5.0625, 81.0]> : tensor<5xf64>]} {
  %e = nn.constant dense<4.0> : tensor<5xf64>
  %y = nn.pow %x, %e : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_square(%x: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[-2.0, -0.5, 0.25, 1.5, 3.0]> : tensor<5xf64>],
    check.results = [dense<[4.0, 0.25, 0.0625, 2.25, 9.0]> : tensor<5xf64>]} {
  %e = nn.constant dense<2.0> : tensor<5xf64>
  %y = nn.pow %x, %e : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_cube(%x: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[-2.0, -0.5, 0.25, 1.5, 3.0]> : tensor<5xf64>],
    check.results = [dense<[-8.0, -0.125, 0.015625, 3.375, 27.0]> : tensor<5xf64>]} {
  %e = nn.constant dense<3.0> : tensor<5xf64>
  %y = nn.pow %x, %e : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
func.func @numbers_square_root(%x: tensor<5xf64>) -> tensor<5xf64> attributes {
    check.inputs = [dense<[2.0, 0.5, 0.25, 1.5, 3.0]> : tensor<5xf64>],
    check.results = [dense<[1.4142135623730951, 0.7071067811865476, 0.5, 1.224744871391589, 1.7320508075688772]> : tensor<5xf64>]} {
  %e = nn.constant dense<0.5> : tensor<5xf64>
  %y = nn.pow %x, %e : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}

// -----

// NUMBERS
// Unlike the square root: infinity of -infinity, and 0 of -0, whose reciprocal is infinity.
func.func @numbers_power_of_infinity(%x: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[0xFFF0000000000000, -0.0, 4.0]> : tensor<3xf64>],
    check.results = [dense<[0.0, 0x7FF0000000000000, 0.5]> : tensor<3xf64>]} {
  %e = nn.constant dense<0.5> : tensor<3xf64>
  %y = nn.pow %x, %e : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %r = nn.reciprocal %y : (tensor<3xf64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}

// -----

// NUMBERS
// x^0 is the constant 1: its slope is 0, at 0 too.
func.func @numbers_at_zero(%x: tensor<4xf64>) -> tensor<4xf64> attributes {
    check.inputs = [dense<[0.0, 0.0, -1.5, 0.0]> : tensor<4xf64>],
    check.results = [dense<[1.0, 0.0, 1.0, 0.0]> : tensor<4xf64>]} {
  %e = nn.constant dense<[0.0, 4.0, 0.0, 6.0]> : tensor<4xf64>
  %y = nn.pow %x, %e : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}
