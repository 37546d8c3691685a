// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%a: tensor<3xi64>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.bit_not %a : (tensor<3xi64>) -> tensor<4xi64>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%a: tensor<3xi64>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xi64>' are incompatible}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.bit_not %a : (tensor<3xi64>) -> tensor<3xi32>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[BIT_NOT:.*]] = nn.bit_not %arg1
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %[[BIT_NOT]]
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %arg0, %[[CAST]]
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[CAST]]
// Integers have no gradient.
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">},
                 %i: tensor<2x3xi64> {train.role = #train.input<"i">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %bits = nn.bit_not %i : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %number = nn.cast %bits : (tensor<2x3xi64>) -> tensor<2x3xf32>
  %y = nn.mul %a, %number : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<5xi64>) -> tensor<5xi64> attributes {
    check.inputs = [dense<[-9223372036854775808, 7, -1, 1099511627776, 0]> : tensor<5xi64>],
    check.results = [dense<[9223372036854775807, -8, 0, -1099511627777, -1]> : tensor<5xi64>]} {
  %y = nn.bit_not %a : (tensor<5xi64>) -> tensor<5xi64>
  return %y : tensor<5xi64>
}

// -----

// NUMBERS
// In a register of 64 bits an integer of 32 keeps its sign.
func.func @numbers_narrow(%a: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi64>) attributes {
    check.inputs = [dense<[-2147483648, 2147483647, -7]> : tensor<3xi32>],
    check.results = [dense<[2147483647, -2147483648, 6]> : tensor<3xi32>, dense<[2147483647, -2147483648, 6]> : tensor<3xi64>]} {
  %y = nn.bit_not %a : (tensor<3xi32>) -> tensor<3xi32>
  %wide = nn.cast %y : (tensor<3xi32>) -> tensor<3xi64>
  return %y, %wide : tensor<3xi32>, tensor<3xi64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1x1xi64>) -> tensor<1x1xi64> attributes {
    check.inputs = [dense<[[5]]> : tensor<1x1xi64>],
    check.results = [dense<[[-6]]> : tensor<1x1xi64>]} {
  %y = nn.bit_not %a : (tensor<1x1xi64>) -> tensor<1x1xi64>
  return %y : tensor<1x1xi64>
}

// -----

// NUMBERS
// What has no sign gets none in a register of 64 bits.
func.func @numbers_unsigned(%a: tensor<2xui8>) -> (tensor<2xui8>, tensor<2xi64>) attributes {
    check.inputs = [dense<[5, 255]> : tensor<2xui8>],
    check.results = [dense<[250, 0]> : tensor<2xui8>, dense<[250, 0]> : tensor<2xi64>]} {
  %y = nn.bit_not %a : (tensor<2xui8>) -> tensor<2xui8>
  %wide = nn.cast %y : (tensor<2xui8>) -> tensor<2xi64>
  return %y, %wide : tensor<2xui8>, tensor<2xi64>
}
