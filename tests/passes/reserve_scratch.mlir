// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -reserve-scratch | %FileCheck %s
// RUN: %trainc-opt %s -reserve-scratch -plan-memory | %FileCheck %s --check-prefix=PLAN

// 32 parts of 64 rows, two reductions: 2 x 32 x 768 elements of 4 bytes.
// CHECK: kernel.function @columns column
// CHECK-SAME: scratch_bytes = 196608
kernel.function @columns column dims [2048, 768] reduced 1 outputs 2
    accesses [#kernel.access<[768, 1], 0>, #kernel.access<[0, 1], 0>, #kernel.access<[0, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<f32>):
  %s:2 = kernel.reduce [#kernel<reduction add>, #kernel<reduction max>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0, %0 : f32, f32
  } : f32, f32
  kernel.store %s#0, %y : f32, !kernel.buffer<f32>
  kernel.store %s#1, %z : f32, !kernel.buffer<f32>
}

// One part for each 4096 elements.
// CHECK: kernel.function @all full
// CHECK-SAME: scratch_bytes = 128
kernel.function @all full dims [65536] reduced 1 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f64>, %y: !kernel.buffer<f64>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f64> -> f64
    kernel.yield %0 : f64
  } : f64
  kernel.store %s, %y : f64, !kernel.buffer<f64>
}

// Few rows, few elements, rows: none.
// CHECK: kernel.function @few column
// CHECK-NOT: scratch_bytes
kernel.function @few column dims [8, 4096] reduced 1 outputs 1
    accesses [#kernel.access<[4096, 1], 0>, #kernel.access<[0, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}
kernel.function @row row dims [8, 4096] reduced 1 outputs 1
    accesses [#kernel.access<[4096, 1], 0>, #kernel.access<[1, 0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// A second reduction that needs the first is not cut.
kernel.function @twice full dims [65536] reduced 1 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %m = kernel.reduce [#kernel<reduction max>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    %1 = arith.subf %0, %m : f32
    kernel.yield %1 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// PLAN: func.func @forward_backward
// PLAN: kernel.launch @columns
// PLAN-SAME: scratch = #kernel.place<workspace, 0>
func.func @forward_backward(%x: tensor<2048x768xf32> {train.kind = "input", train.name = "x"})
    -> (tensor<768xf32> {train.kind = "output", train.name = "s"}, tensor<768xf32> {train.kind = "output", train.name = "m"}) {
  %0:2 = kernel.launch @columns(%x) : (tensor<2048x768xf32>) -> (tensor<768xf32>, tensor<768xf32>)
  return %0#0, %0#1 : tensor<768xf32>, tensor<768xf32>
}
