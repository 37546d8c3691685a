// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section RIGHT %s > %t.right.mlir && %trainc-check-gradient --f32 %t.right.mlir | %FileCheck %s --check-prefix=RIGHT
// RUN: %section WRONG %s > %t.wrong.mlir && not %trainc-check-gradient --f32 %t.wrong.mlir | %FileCheck %s --check-prefix=WRONG
//
// trainc-check-gradient itself: a program without constants, a comparison that rounding decides, a
// wrong value.

// RIGHT
// NUMBERS
// RIGHT: numbers_no_constants {{.*}} f32 3, 0 undetermined, 0.00 ok
func.func @numbers_no_constants(%x: tensor<3xi64>) -> tensor<3xi64> attributes {
    check.inputs = [dense<[0, -7, 9]> : tensor<3xi64>], check.results = [dense<[0, -14, 18]> : tensor<3xi64>]} {
  %y = nn.add %x, %x : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %y : tensor<3xi64>
}

// -----

// RIGHT
// NUMBERS
// In f32 1 + 2^-30 is 1: whether it is above 1 cannot be told.
// RIGHT: numbers_too_close {{.*}} f32 2, 1 undetermined, {{.*}} ok
func.func @numbers_too_close(%x: tensor<2xf64>) -> tensor<2xf64> attributes {
    check.inputs = [dense<[0.25, 9.31322574615478515625e-10]> : tensor<2xf64>]} {
  %one = nn.constant dense<1.0> : tensor<2xf64>
  %sum = nn.add %x, %one : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  %above = nn.greater %sum, %one : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xi1>
  %y = nn.cast %above : (tensor<2xi1>) -> tensor<2xf64>
  return %y : tensor<2xf64>
}

// -----

// WRONG
// NUMBERS
// WRONG: numbers_wrong_value {{.*}} WRONG
// WRONG-NEXT: result 0 element 1: 2.5{{0*}} instead of 2.0{{0*}}
// WRONG-NEXT: result 0 element 2
func.func @numbers_wrong_value(%x: tensor<3xf64>) -> tensor<3xf64> attributes {
    check.inputs = [dense<[0.5, 1.25, 4.0]> : tensor<3xf64>], check.results = [dense<[1.0, 2.0, 9.0]> : tensor<3xf64>]} {
  %y = nn.add %x, %x : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
