// SPDX-License-Identifier: Apache-2.0
//
// RUN: rm -rf %t && mkdir -p %t
// RUN: %trainc-opt %s -schedule-kernels=target=cuda -plan-memory -o %t/planned.mlir
// RUN: %trainc-emit %t/planned.mlir -o %t/cuda --target cuda
// RUN: %FileCheck %s < %t/cuda/kernels.cu
//
// Results of more than 2^31 elements, such as logits of a large batch, have indexes of 64 bits on a device.

#all = #kernel.access<[40000, 1], 0>
#of_row = #kernel.access<[1, 0], 0>
#of_column = #kernel.access<[0, 1], 0>

module attributes {train.model = "large"} {
  // CHECK: static __global__ void points_points(
  // CHECK-NEXT: for (int64_t point = static_cast<int64_t>(blockIdx.x) * 256 +
  // CHECK-NEXT: threadIdx.x; point < 655360000; point += 1048576) {
  // CHECK-NEXT: const int64_t i = point / 10000;
  // CHECK-NEXT: const int64_t j = point % 10000 * 4;
  // CHECK: launch("points", points_points, {.blocks = 4096, .threads = 256}, reads(x, 2621440000),
  kernel.function @points pointwise dims [65536, 40000] reduced 0 outputs 1
      accesses [#all, #of_column, #all] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %b: !kernel.buffer<f32> loc("bias"), %y: !kernel.buffer<f32> loc("y")):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = kernel.load %b : !kernel.buffer<f32> -> f32
      %2 = arith.addf %0, %1 : f32
      kernel.store %2, %y : f32, !kernel.buffer<f32>
    }
  }

  // CHECK: static __global__ void rows_rows(
  // CHECK-NEXT: const int64_t i = blockIdx.x;
  // CHECK: for (int64_t j = threadIdx.x * 4; j < 40000; j += 1024) {
  // CHECK: launch("rows", rows_rows, {.blocks = 65536, .threads = 256}
  kernel.function @rows row dims [65536, 40000] reduced 1 outputs 1
      accesses [#all, #of_row] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // CHECK: static __global__ void columns_parts(
  // CHECK: const int64_t j = (static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x % 32) * 4;
  // CHECK: for (int64_t i = part * {{[0-9]+}} + threadIdx.x / 32;
  kernel.function @columns column dims [65536, 40000] reduced 1 outputs 1
      accesses [#all, #of_column] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // CHECK: static __global__ void all_parts(
  // CHECK: for (int64_t point = static_cast<int64_t>(blockIdx.x) * 256 +
  // CHECK-NEXT: threadIdx.x; point < 655360000; point += 262144) {
  kernel.function @all full dims [65536, 40000] reduced 2 outputs 1
      accesses [#all, #kernel.access<[0, 0], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  func.func @evaluate(
      %x: tensor<65536x40000xf32> {train.role = #train.input<"x">},
      %b: tensor<40000xf32> {train.role = #train.input<"b">})
      -> (tensor<65536xf32> {train.role = #train.output<"rows">},
          tensor<40000xf32> {train.role = #train.output<"columns">},
          tensor<f32> {train.role = #train.loss}) {
    %y = kernel.launch @points(%x, %b) : (tensor<65536x40000xf32>, tensor<40000xf32>) -> tensor<65536x40000xf32>
    %rows = kernel.launch @rows(%y) : (tensor<65536x40000xf32>) -> tensor<65536xf32>
    %columns = kernel.launch @columns(%y) : (tensor<65536x40000xf32>) -> tensor<40000xf32>
    %all = kernel.launch @all(%y) : (tensor<65536x40000xf32>) -> tensor<f32>
    return %rows, %columns, %all : tensor<65536xf32>, tensor<40000xf32>, tensor<f32>
  }
}
