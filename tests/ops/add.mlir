// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%a: tensor<3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.add %a, %b : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error@+2 {{operands have one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.add %a, %b : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[ADD:.*]] = nn.add %arg0, %arg1
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %[[ADD]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: return %[[REDUCE_SUM]], %arg2, %arg2
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">}, %b: tensor<2x3xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.add %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<7xf64>, %b: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>, dense<[1.5, -0.75, 2.0, -1.25, 0.5, -3.0, 0.625]> : tensor<7xf64>],
    check.results = [dense<[-1.0, -2.0, 1.5, -1.0, 1.25, -1.5, 3.625]> : tensor<7xf64>]} {
  %y = nn.add %a, %b : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1x1xf64>, %b: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>, dense<[[0.5]]> : tensor<1x1xf64>],
    check.results = [dense<[[1.25]]> : tensor<1x1xf64>]} {
  %y = nn.add %a, %b : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_same_operand(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[0.125, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0]> : tensor<7xf64>],
    check.results = [dense<[0.25, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0]> : tensor<7xf64>]} {
  %y = nn.add %x, %x : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// Wraps at 32 bits, within a kernel too.
func.func @numbers_int32_wraps(%a: tensor<2xi32>, %b: tensor<2xi32>, %x: tensor<2xf64>) -> tensor<2xf64> attributes {
    check.inputs = [dense<[2147483647, 5]> : tensor<2xi32>, dense<[1, -7]> : tensor<2xi32>, dense<1.0> : tensor<2xf64>],
    check.results = [dense<[-2147483648.0, -2.0]> : tensor<2xf64>]} {
  %sum = nn.add %a, %b : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %real = nn.cast %sum : (tensor<2xi32>) -> tensor<2xf64>
  %y = nn.mul %real, %x : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  return %y : tensor<2xf64>
}

// -----

// NUMBERS
// Wraps at 8 bits, and what has no sign gets none in a register.
func.func @numbers_bytes_wrap(%a: tensor<2xui8>, %b: tensor<2xui8>, %c: tensor<2xi8>) -> (tensor<2xui8>, tensor<2xi8>, tensor<2xf64>) attributes {
    check.inputs = [dense<[200, 7]> : tensor<2xui8>, dense<[100, 250]> : tensor<2xui8>, dense<[100, -100]> : tensor<2xi8>],
    check.results = [dense<[44, 1]> : tensor<2xui8>, dense<[-56, 56]> : tensor<2xi8>, dense<[244.0, 8.0]> : tensor<2xf64>]} {
  %sum = nn.add %a, %b : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %twice = nn.add %c, %c : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %real = nn.cast %sum : (tensor<2xui8>) -> tensor<2xf64>
  %before = nn.cast %a : (tensor<2xui8>) -> tensor<2xf64>
  %y = nn.add %real, %before : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  return %sum, %twice, %y : tensor<2xui8>, tensor<2xi8>, tensor<2xf64>
}
