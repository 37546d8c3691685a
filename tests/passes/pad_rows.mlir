// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -pad-rows | %FileCheck %s
// RUN: %trainc-opt %s -pad-rows -plan-memory | %FileCheck %s --check-prefix=PLACES

// Logits and their gradient get a pitch; products and the kernel count by it. A kernel that walks its tensor as one line, a
// tensor that leaves the function, one in f32 and one of short rows keep theirs.
// CHECK: kernel.function @loss row dims [64, 4097] {{.*}}accesses [#kernel.access<[4160, 1], 0>, #kernel.access<[4160, 1], 0>]
// CHECK: kernel.function @flat pointwise dims [262208] {{.*}}accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>]
// CHECK-LABEL: func.func @forward_backward
// CHECK: %[[LOGITS:.*]] = kernel.matmul %arg0, %arg1 {{.*}}matrix_c = #kernel.matrix<0, [0], 4160, 1>{{.*}} -> tensor<64x4097xbf16, 4160 : i64>
// CHECK: %[[D:.*]] = kernel.launch @loss(%[[LOGITS]]) : (tensor<64x4097xbf16, 4160 : i64>) -> tensor<64x4097xbf16, 4160 : i64>
// CHECK: kernel.matmul %[[D]], %arg1 {{.*}}matrix_a = #kernel.matrix<0, [0], 4160, 1>
// CHECK: kernel.matmul %[[D]], %arg0 {{.*}}matrix_a = #kernel.matrix<0, [0], 1, 4160>
// CHECK: kernel.matmul %arg0, %arg1 {{.*}}matrix_c = #kernel.matrix<0, [0], 4097, 1>{{.*}} -> tensor<64x4097xbf16>
// CHECK: kernel.launch @flat({{.*}}) : (tensor<64x4097xbf16>) -> tensor<64x4097xbf16>

// The room is part of the tensor's bytes: 64 x 4160 x 2 from 923904 to the end.
// PLACES: kernel.arena_bytes = array<i64: 0, 0, 0, 1456384, 0, 0>
// PLACES: kernel.launch @loss({{.*}}) {places = [#kernel.place<activations, 923904>]}
kernel.function @loss row dims [64, 4097] reduced 1 outputs 1
    accesses [#kernel.access<[4097, 1], 0>, #kernel.access<[4097, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<bf16>, %y: !kernel.buffer<bf16>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
    %1 = arith.subf %0, %s : f32
    kernel.store %1, %y : f32, !kernel.buffer<bf16>
  }
}

kernel.function @flat pointwise dims [262208] reduced 0 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
^bb0(%x: !kernel.buffer<bf16>, %y: !kernel.buffer<bf16>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<bf16>
  }
}

func.func @forward_backward(%x: tensor<64x16xbf16>, %w: tensor<4097x16xbf16>)
    -> (tensor<64x16xf32>, tensor<4097x16xf32>, tensor<64x4097xbf16>) {
  %0 = kernel.matmul %x, %w {batch = array<i64: 1>, m = 64, n = 4097, k = 16, matrix_a = #kernel.matrix<0, [0], 16, 1>, matrix_b = #kernel.matrix<0, [0], 1, 16>, matrix_c = #kernel.matrix<0, [0], 4097, 1>} : tensor<64x16xbf16>, tensor<4097x16xbf16> -> tensor<64x4097xbf16>
  %1 = kernel.launch @loss(%0) : (tensor<64x4097xbf16>) -> tensor<64x4097xbf16>
  %2 = kernel.matmul %1, %w {batch = array<i64: 1>, m = 64, n = 16, k = 4097, matrix_a = #kernel.matrix<0, [0], 4097, 1>, matrix_b = #kernel.matrix<0, [0], 16, 1>, matrix_c = #kernel.matrix<0, [0], 16, 1>} : tensor<64x4097xbf16>, tensor<4097x16xbf16> -> tensor<64x16xf32>
  %3 = kernel.matmul %1, %x {batch = array<i64: 1>, m = 4097, n = 16, k = 64, matrix_a = #kernel.matrix<0, [0], 1, 4097>, matrix_b = #kernel.matrix<0, [0], 16, 1>, matrix_c = #kernel.matrix<0, [0], 16, 1>} : tensor<64x4097xbf16>, tensor<64x16xbf16> -> tensor<4097x16xf32>
  %4 = kernel.matmul %x, %w {batch = array<i64: 1>, m = 64, n = 4097, k = 16, matrix_a = #kernel.matrix<0, [0], 16, 1>, matrix_b = #kernel.matrix<0, [0], 1, 16>, matrix_c = #kernel.matrix<0, [0], 4097, 1>} : tensor<64x16xbf16>, tensor<4097x16xbf16> -> tensor<64x4097xbf16>
  %5 = kernel.launch @flat(%4) : (tensor<64x4097xbf16>) -> tensor<64x4097xbf16>
  return %2, %3, %5 : tensor<64x16xf32>, tensor<4097x16xf32>, tensor<64x4097xbf16>
}
