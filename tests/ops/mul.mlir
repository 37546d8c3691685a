// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s

// pointwise-c1
func.func @pointwise_c1(%a: tensor<3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.mul %a, %b : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// pointwise-c2
func.func @pointwise_c2(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error@+2 {{operands have one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = nn.mul %a, %b : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf64>
  return
}

// -----

// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %arg0, %arg1
// CHECK-NEXT: %[[MUL2:.*]] = nn.mul %[[MUL]], %arg2
// CHECK-NEXT: %[[REDUCE_SUM:.*]] = nn.reduce_sum %[[MUL2]] {dimensions = array<i64: 0, 1>}
// CHECK-NEXT: %[[MUL3:.*]] = nn.mul %arg2, %arg1
// CHECK-NEXT: %[[MUL4:.*]] = nn.mul %arg2, %arg0
// CHECK-NEXT: return %[[REDUCE_SUM]], %[[MUL3]], %[[MUL4]]
func.func @model(%a: tensor<2x3xf32> {train.role = #train.parameter<"a">}, %b: tensor<2x3xf32> {train.role = #train.parameter<"b">},
                 %weight: tensor<2x3xf32> {train.role = #train.input<"weight">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %y = nn.mul %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %weighted = nn.mul %y, %weight : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// NUMBERS
func.func @numbers_odd(%a: tensor<7xf64>, %b: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[-2.5, -1.25, -0.5, 0.25, 0.75, 1.5, 3.0]> : tensor<7xf64>, dense<[1.5, -0.75, 2.0, -1.25, 0.5, -3.0, 0.625]> : tensor<7xf64>],
    check.results = [dense<[-3.75, 0.9375, -1.0, -0.3125, 0.375, -4.5, 1.875]> : tensor<7xf64>]} {
  %y = nn.mul %a, %b : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
func.func @numbers_one(%a: tensor<1x1xf64>, %b: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {
    check.inputs = [dense<[[0.75]]> : tensor<1x1xf64>, dense<[[0.5]]> : tensor<1x1xf64>],
    check.results = [dense<[[0.375]]> : tensor<1x1xf64>]} {
  %y = nn.mul %a, %b : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

// -----

// NUMBERS
func.func @numbers_same_operand(%x: tensor<7xf64>) -> tensor<7xf64> attributes {
    check.inputs = [dense<[0.125, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0]> : tensor<7xf64>],
    check.results = [dense<[0.015625, 0.25, 0.5625, 1.0, 2.25, 6.25, 16.0]> : tensor<7xf64>]} {
  %y = nn.mul %x, %x : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  return %y : tensor<7xf64>
}

// -----

// NUMBERS
// Products that leave the type, and in C++ the int that it would be computed in.
func.func @numbers_unsigned_wrap(%a: tensor<5xui16>, %b: tensor<5xui32>, %c: tensor<5xi16>) -> (tensor<5xui16>, tensor<5xui32>, tensor<5xi16>) attributes {
    check.inputs = [dense<[65535, 300, 2, 0, 1]> : tensor<5xui16>, dense<[4294967295, 70000, 3, 0, 1]> : tensor<5xui32>, dense<[-32768, 300, -2, 0, 1]> : tensor<5xi16>],
    check.results = [dense<[1, 24464, 4, 0, 1]> : tensor<5xui16>, dense<[1, 605032704, 9, 0, 1]> : tensor<5xui32>, dense<[0, 24464, 4, 0, 1]> : tensor<5xi16>]} {
  %x = nn.mul %a, %a : (tensor<5xui16>, tensor<5xui16>) -> tensor<5xui16>
  %y = nn.mul %b, %b : (tensor<5xui32>, tensor<5xui32>) -> tensor<5xui32>
  %z = nn.mul %c, %c : (tensor<5xi16>, tensor<5xi16>) -> tensor<5xi16>
  return %x, %y, %z : tensor<5xui16>, tensor<5xui32>, tensor<5xi16>
}
