// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -verify-diagnostics -split-input-file -o /dev/null
// RUN: %section GRADIENT %s | %trainc-opt -split-input-file -differentiate | %FileCheck %s
// RUN: %trainc-check-gradient %s --keep %t
// RUN: %FileCheck %s --check-prefix=SOURCE < %t/kernels.cpp

// random_bits-c1
func.func @random_bits_c1_result() {
  // expected-error@+1 {{result #0 must be statically shaped tensor of 64-bit signless integer values}}
  %0 = nn.random_bits {stream = 0 : i64, bits = 30 : i64} : () -> tensor<3xi32>
  return
}

// -----

// random_bits-c1
func.func @random_bits_c1_keys(%keys: tensor<2xi64>) {
  // expected-error@+1 {{keys have the type of the result, found 'tensor<2xi64>'}}
  %0 = nn.random_bits %keys {stream = 0 : i64, bits = 30 : i64} : (tensor<2xi64>) -> tensor<3xi64>
  return
}

// -----

// random_bits-c2
func.func @random_bits_c2() {
  // expected-error@+1 {{makes 1 to 63 bits, found 64}}
  %0 = nn.random_bits {stream = 0 : i64, bits = 64 : i64} : () -> tensor<3xi64>
  return
}

// -----

// random_bits-c3
func.func @random_bits_c3() {
  // expected-error@+1 {{stream -1 is negative}}
  %0 = nn.random_bits {stream = -1 : i64, bits = 30 : i64} : () -> tensor<3xi64>
  return
}

// -----

// The numbers are a function of keys and positions: the backward pass computes them again, or
// what follows from them, as it likes.
// GRADIENT
// CHECK-LABEL: func.func @forward_backward
// CHECK: %[[RANDOM:.*]] = nn.random_bits %arg1 {bits = 24 : i64, stream = 4 : i64}
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %[[RANDOM]]
// CHECK-NEXT: %[[MUL:.*]] = nn.mul %arg0, %[[CAST]]
// CHECK-NEXT: %[[LOSS:.*]] = nn.reduce_sum %[[MUL]]
// CHECK-NEXT: return %[[LOSS]], %[[CAST]]
func.func @model(%x: tensor<2x3xf32> {train.role = #train.parameter<"x">},
                 %keys: tensor<2x3xi64> {train.role = #train.input<"keys">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %bits = nn.random_bits %keys {stream = 4 : i64, bits = 24 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %f = nn.cast %bits : (tensor<2x3xi64>) -> tensor<2x3xf32>
  %y = nn.mul %x, %f : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Expected values are those of the authors' Random123: words 0 and 1 of
// philox4x32_10(key, {element, 0, stream, 0}), their highest bits.

// -----

// NUMBERS
func.func @numbers_of_keys(%keys: tensor<2x3xi64>) -> tensor<2x3xi64> attributes {
    check.inputs = [dense<[[5, 5, 5], [9007199254740991, -7, 0]]> : tensor<2x3xi64>],
    check.results = [dense<[[199834842, 350680063, 113235537], [1024719048, 147930552, 214632637]]> : tensor<2x3xi64>]} {
  %0 = nn.random_bits %keys {stream = 3 : i64, bits = 30 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  return %0 : tensor<2x3xi64>
}

// -----

// NUMBERS
func.func @numbers_without_keys(%x: tensor<5xi64>) -> tensor<5xi64> attributes {
    check.inputs = [dense<[0, 0, 0, 0, 0]> : tensor<5xi64>],
    check.results = [dense<[7021839373635301, 2655707271271154, 3540705168888599, 4476328044726443, 1840807548066335]> : tensor<5xi64>]} {
  %0 = nn.random_bits {stream = 8589934599 : i64, bits = 53 : i64} : () -> tensor<5xi64>
  %1 = nn.add %0, %x : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
  return %1 : tensor<5xi64>
}

// -----

// NUMBERS
func.func @numbers_1_bits(%keys: tensor<7x1xi64>) -> tensor<7x1xi64> attributes {
    check.inputs = [dense<11> : tensor<7x1xi64>],
    check.results = [dense<[[1], [0], [1], [1], [1], [1], [1]]> : tensor<7x1xi64>]} {
  %0 = nn.random_bits %keys {stream = 2 : i64, bits = 1 : i64} : (tensor<7x1xi64>) -> tensor<7x1xi64>
  return %0 : tensor<7x1xi64>
}

// -----

// NUMBERS
func.func @numbers_31_bits(%keys: tensor<7x1xi64>) -> tensor<7x1xi64> attributes {
    check.inputs = [dense<11> : tensor<7x1xi64>],
    check.results = [dense<[[1597743836], [998596578], [1424435515], [1077526928], [1526446685], [2131547170], [1945726282]]> : tensor<7x1xi64>]} {
  %0 = nn.random_bits %keys {stream = 2 : i64, bits = 31 : i64} : (tensor<7x1xi64>) -> tensor<7x1xi64>
  return %0 : tensor<7x1xi64>
}

// -----

// NUMBERS
func.func @numbers_32_bits(%keys: tensor<7x1xi64>) -> tensor<7x1xi64> attributes {
    check.inputs = [dense<11> : tensor<7x1xi64>],
    check.results = [dense<[[3195487673], [1997193157], [2848871031], [2155053856], [3052893370], [4263094340], [3891452565]]> : tensor<7x1xi64>]} {
  %0 = nn.random_bits %keys {stream = 2 : i64, bits = 32 : i64} : (tensor<7x1xi64>) -> tensor<7x1xi64>
  return %0 : tensor<7x1xi64>
}

// -----

// NUMBERS
func.func @numbers_keep_their_positions(%key: tensor<i64>) -> (tensor<2x3xi64>, tensor<2xi64>) attributes {
    check.inputs = [dense<6> : tensor<i64>],
    check.results = [dense<[[1028272, 771668, 420835], [631711, 645669, 539351]]> : tensor<2x3xi64>, dense<[2220775, 1816731]> : tensor<2xi64>]} {
  %keys = nn.broadcast %key {dimensions = array<i64>} : (tensor<i64>) -> tensor<3x4xi64>
  %0 = nn.random_bits %keys {stream = 1 : i64, bits = 20 : i64} : (tensor<3x4xi64>) -> tensor<3x4xi64>
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x4xi64>) -> tensor<4x3xi64>
  %2 = nn.slice %1 {starts = array<i64: 1, 0>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<4x3xi64>) -> tensor<2x3xi64>
  %3 = nn.reduce_sum %2 {dimensions = array<i64: 1>} : (tensor<2x3xi64>) -> tensor<2xi64>
  return %2, %3 : tensor<2x3xi64>, tensor<2xi64>
}

// -----

// NUMBERS
// 30 bits fit an int, their squares do not.
func.func @numbers_beyond_int(%keys: tensor<5xi64>) -> tensor<5xi64> attributes {
    check.inputs = [dense<3> : tensor<5xi64>],
    check.results = [dense<[70724583568083600, 30521284610289561, 49299906251215684, 85387445016535204, 685510831592314225]> : tensor<5xi64>]} {
  %0 = nn.random_bits %keys {stream = 9 : i64, bits = 30 : i64} : (tensor<5xi64>) -> tensor<5xi64>
  %1 = nn.mul %0, %0 : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
  return %1 : tensor<5xi64>
}

// -----

// NUMBERS
// Sums, differences and products of what fits an int, beyond it in both directions.
// SOURCE: out[i] = static_cast<int64_t>(random) + 2147483646;
// SOURCE: static_cast<int64_t>(-2147483646) -{{$}}
// SOURCE-NEXT: random_bits<30>(
// SOURCE: out_3[i] = static_cast<int64_t>(random) * 4;
func.func @numbers_far_beyond_int(%keys: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) attributes {
    check.inputs = [dense<11> : tensor<2xi64>],
    check.results = [dense<[2946355564, 2646781935]> : tensor<2xi64>, dense<[-2675319661, -2424218063]> : tensor<2xi64>, dense<[3195487672, 1997193156]> : tensor<2xi64>]} {
  %0 = nn.random_bits %keys {stream = 2 : i64, bits = 30 : i64} : (tensor<2xi64>) -> tensor<2xi64>
  %1 = nn.random_bits %keys {stream = 9 : i64, bits = 30 : i64} : (tensor<2xi64>) -> tensor<2xi64>
  %four = nn.constant dense<4> : tensor<2xi64>
  %most = nn.constant dense<2147483646> : tensor<2xi64>
  %sum = nn.add %0, %most : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %minus = nn.neg %most : (tensor<2xi64>) -> tensor<2xi64>
  %difference = nn.sub %minus, %1 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %product = nn.mul %0, %four : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return %sum, %difference, %product : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>
}

// -----

// NUMBERS
// Keys of the model's own are those of training, too: the gradient reads the same rows.
func.func @numbers_own_keys(%x: tensor<3xf64>) -> tensor<3xf64> {
  %keys = nn.constant dense<[-2, -3, 3]> : tensor<3xi64>
  %bits = nn.random_bits %keys {stream = 9 : i64, bits = 5 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %three = nn.constant dense<3> : tensor<3xi64>
  %rows = nn.remainder %bits, %three : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %0 = nn.gather %x, %rows : (tensor<3xf64>, tensor<3xi64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// -----

// The gradient draws what the loss drew.
// NUMBERS
func.func @numbers_choose_rows(%table: tensor<3x7xf64>) -> tensor<3x7x7xf64> {
  %rows = nn.random_bits {stream = 4 : i64, bits = 1 : i64} : () -> tensor<3x7xi64>
  %0 = nn.gather %table, %rows : (tensor<3x7xf64>, tensor<3x7xi64>) -> tensor<3x7x7xf64>
  return %0 : tensor<3x7x7xf64>
}
