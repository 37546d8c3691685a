// RUN: rm -rf %t && %trainc-emit %s -o %t
// RUN: cd %t && for file in *.cpp; do g++ -std=c++20 -fopenmp -Wall -Wextra -Werror -I . -I %S/../.. -fsyntax-only $file || exit 1; done
// RUN: %FileCheck %s < %t/memory.h
// RUN: %FileCheck %s --check-prefix=KERNELS < %t/kernels.cpp
//
// Names that end comments, lines or literals, keywords, names that meet after sanitising.

// CHECK: constexpr in_parameters<float> int_2 = 0; // [4], int
// CHECK: constexpr in_parameters<float> a_b = 64; // [4]{{$}}
// CHECK: constexpr in_parameters<float> a_b_2 = 128; // [4], a/b
// CHECK: constexpr in_parameters<float> n9_lives_abort = 192; // [4], 9 lives"); abort();\x0a;//\x3f;\x3f;/
// CHECK: constexpr in_parameters<float> unnamed = 256; // [4], \xe5;\xb1;\x82;
// KERNELS: // end */ \x0a;#error \x5c; \x3f;\x3f;/

#line = #kernel.access<[1], 0>
module attributes {
  kernel.arena_bytes = array<i64: 1024, 0, 0, 1024, 0, 0>,
  kernel.arena_lower_bound = array<i64: 1024, 0, 0, 1024, 0, 0>
} {
  kernel.function @"return" pointwise dims [4] reduced 0 outputs 1
      accesses [#line, #line, #line] sources ["end */ \0A#error \\ ??/"]
      attributes {schedule = #kernel.cpu_schedule<parallel = 0>} {
  ^bb0(%a: !kernel.buffer<f32>, %b: !kernel.buffer<f32>, %y: !kernel.buffer<f32> loc("exp")):
    kernel.map {
      %0 = kernel.load %a : !kernel.buffer<f32> -> f32
      %1 = kernel.load %b : !kernel.buffer<f32> -> f32
      %2 = arith.addf %0, %1 : f32
      %3 = math.exp %2 : f32
      kernel.store %3, %y : f32, !kernel.buffer<f32>
    }
  }
  func.func @forward_backward(
      %a: tensor<4xf32> {kernel.place = #kernel.place<parameters, 0>, train.role = #train.parameter<"int">},
      %b: tensor<4xf32> {kernel.place = #kernel.place<parameters, 64>, train.role = #train.parameter<"a.b">},
      %c: tensor<4xf32> {kernel.place = #kernel.place<parameters, 128>, train.role = #train.parameter<"a/b">},
      %d: tensor<4xf32> {kernel.place = #kernel.place<parameters, 192>, train.role = #train.parameter<"9 lives\22); abort();\0A//??/">},
      %e: tensor<4xf32> {kernel.place = #kernel.place<parameters, 256>, train.role = #train.parameter<"\E5\B1\82">})
      -> (tensor<4xf32> {kernel.place = #kernel.place<activations, 0>, train.role = #train.loss}) {
    %0 = kernel.launch @"return"(%a, %b) {places = [#kernel.place<activations, 64>]}
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("std::abort\0A#include <x> \\")
    %1 = kernel.launch @"return"(%0, %d) {places = [#kernel.place<activations, 0>]}
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("forward_backward")
    return %1 : tensor<4xf32>
  }
  func.func @evaluate(
      %a: tensor<4xf32> {kernel.place = #kernel.place<parameters, 0>, train.role = #train.parameter<"int">},
      %e: tensor<4xf32> {kernel.place = #kernel.place<parameters, 256>, train.role = #train.parameter<"\E5\B1\82">})
      -> (tensor<4xf32> {kernel.place = #kernel.place<activations, 0>, train.role = #train.loss}) {
    %0 = kernel.launch @"return"(%a, %e) {places = [#kernel.place<activations, 0>]}
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("x")
    return %0 : tensor<4xf32>
  }
}
