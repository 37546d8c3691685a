// RUN: rm -rf %t && %trainc-emit %s -o %t
// RUN: %FileCheck %s < %t/step.cpp
//
// A call of the runtime: its header, numbers of every kind, tensors in order, the scratch last; what
// is computed in place is one address. What keeps its order exchanges something with the other ranks.

// CHECK: #include "runtime/kernels/some.h"
// CHECK-NEXT: #include "runtime/entry_memory.h"
// CHECK-NEXT: #include "step.h"
// CHECK: // mixed
// CHECK-NEXT: m.step(1);
// CHECK-NEXT: mixed(3, -0.5f, 2.0, 1, {4, 5}, m[at::x], m[at::first], m[at::mixed], m.scratch(64));
// CHECK: nothing(m.ranks);

module attributes {kernel.arena_bytes = array<i64: 0, 0, 0, 196, 96, 0>, kernel.arena_lower_bound = array<i64: 0, 0, 0, 196, 96, 0>} {
  func.func @forward_backward(%x: tensor<16xf32> {kernel.place = #kernel.place<activations, 0>, train.role = #train.input<"x">})
      -> (tensor<f32> {kernel.place = #kernel.place<activations, 192>, train.role = #train.loss}) {
    %0:2 = kernel.call "first" of "some" [] (%x) {places = [#kernel.place<activations, 64>, #kernel.place<activations, 128>]}
        : (tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) loc("first")
    %1 = kernel.call "mixed" of "some" [3, -5.000000e-01 : f32, 2.000000e+00 : f64, true, array<i64: 4, 5>] (%x, %0#0, %0#1) {in_place = array<i64: 2>, places = [#kernel.place<activations, 128>], scratch = #kernel.place<workspace, 64>, scratch_bytes = 32}
        : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> loc("mixed")
    kernel.call "nothing" of "some" [] () {ordered, places = []} : () -> ()
    %2 = kernel.call "sum" of "some" [] (%1) {places = [#kernel.place<activations, 192>]} : (tensor<16xf32>) -> tensor<f32> loc("sum")
    return %2 : tensor<f32>
  }
  func.func @evaluate(%x: tensor<16xf32> {kernel.place = #kernel.place<activations, 0>, train.role = #train.input<"x">})
      -> (tensor<f32> {kernel.place = #kernel.place<activations, 192>, train.role = #train.loss}) {
    %0 = kernel.call "sum" of "some" [] (%x) {places = [#kernel.place<activations, 192>]} : (tensor<16xf32>) -> tensor<f32> loc("sum")
    return %0 : tensor<f32>
  }
}
