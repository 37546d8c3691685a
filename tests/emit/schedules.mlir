// SPDX-License-Identifier: Apache-2.0
//
// RUN: rm -rf %t && mkdir -p %t
// RUN: %section CPU %s > %t/cpu.mlir && %trainc-emit %t/cpu.mlir -o %t/cpu
// RUN: %FileCheck %s --check-prefix=CPU < %t/cpu/kernels.cpp
// RUN: %section CUDA %s > %t/cuda.mlir && %trainc-emit %t/cuda.mlir -o %t/cuda --target cuda
// RUN: %FileCheck %s --check-prefix=CUDA < %t/cuda/kernels.cu
// RUN: not %trainc-emit %t/cuda.mlir -o %t/none 2>&1 | %FileCheck %s --check-prefix=NOCPU
// RUN: not %trainc-emit %t/cpu.mlir -o %t/none --target cuda 2>&1 | %FileCheck %s --check-prefix=NOCUDA
// RUN: %section NONE %s > %t/none.mlir
// RUN: not %trainc-emit %t/none.mlir -o %t/none 2>&1 | %FileCheck %s --check-prefix=NOCPU
// RUN: not %trainc-emit %t/none.mlir -o %t/none --target cuda 2>&1 | %FileCheck %s --check-prefix=NOCUDA
//
// Printers print what the schedule says, also what schedule-kernels would not say; without one they stop.

// NOCPU: no schedule for cpu; run schedule-kernels --target=cpu first
// NOCUDA: no schedule for cuda; run schedule-kernels --target=cuda first

// CPU
#arenas = array<i64: 0, 0, 0, 4096, 0, 0>
module attributes {kernel.arena_bytes = #arenas, kernel.arena_lower_bound = #arenas} {
  // CPU: void rows(
  // CPU: #pragma omp parallel for schedule(static)
  // CPU-NEXT: for (int i = 0; i < 4; ++i) {
  // CPU-NEXT: for (int j = 0; j < 6; ++j) {
  kernel.function @rows row dims [4, 6, 9] reduced 1 outputs 1
      accesses [#kernel.access<[9, 36, 1], 0>, #kernel.access<[6, 1, 0], 0>] sources []
      attributes {schedule = #kernel.cpu_schedule<parallel = 1>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }
  // CPU: void columns(
  // CPU: constexpr int block = 5; // columns
  // CPU-NEXT: float sum_of_chunk[3][12];
  // CPU-NEXT: #pragma omp parallel for collapse(2) schedule(static)
  // CPU-NEXT: for (int chunk = 0; chunk < 3; ++chunk) {
  // CPU: for (int i = chunk * 7; i < minimum(20, (chunk + 1) * 7); ++i) {
  kernel.function @columns column dims [20, 12] reduced 1 outputs 1
      accesses [#kernel.access<[12, 1], 0>, #kernel.access<[0, 1], 0>] sources []
      attributes {schedule = #kernel.cpu_schedule<parallel = 2, block = 5, chunk = 7>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }
  // CPU: void all(
  // CPU: float sum_of_block[4];
  // CPU: for (int block = 0; block < 4; ++block) {
  // CPU: const int begin = block * 32;
  kernel.function @all full dims [100] reduced 1 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources []
      attributes {schedule = #kernel.cpu_schedule<parallel = 1, block = 32>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }
  func.func @forward_backward(%x: tensor<240xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 1024>}) {
    %0 = kernel.launch @all(%x) {places = [#kernel.place<activations, 1024>]} : (tensor<240xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  kernel.function @one pointwise dims [] reduced 0 outputs 1
      accesses [#kernel.access<[], 0>, #kernel.access<[], 0>] sources []
      attributes {schedule = #kernel.cpu_schedule<parallel = 0>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }
  func.func @evaluate(%x: tensor<240xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 1024>}) {
    %0 = kernel.launch @one(%x) {places = [#kernel.place<activations, 1024>]} : (tensor<240xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// CUDA
#arenas = array<i64: 0, 0, 0, 4096, 256, 0>
module attributes {kernel.arena_bytes = #arenas, kernel.arena_lower_bound = #arenas} {
  // Fewer threads than vectors: they loop.
  // CUDA: for (int i = (blockIdx.x * 32 + threadIdx.x) * 4; i < 240; i += 128) {
  // CUDA: launch("points", points_points, {.blocks = 1, .threads = 32}
  kernel.function @points pointwise dims [240] reduced 0 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources []
      attributes {schedule = #kernel.cuda_schedule<[<whole, thread, threads = 32, blocks = 1, vector = 4>]>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }
  // CUDA: const int i = blockIdx.x * 2 + threadIdx.x / 32;
  // CUDA: for (int j = threadIdx.x % 32; j < 12; j += 32) {
  // CUDA: launch("rows", rows_rows, {.blocks = 10, .threads = 64}
  kernel.function @rows row dims [20, 12] reduced 1 outputs 1
      accesses [#kernel.access<[12, 1], 0>, #kernel.access<[1, 0], 0>] sources []
      attributes {schedule = #kernel.cuda_schedule<[<whole, warp, threads = 64, blocks = 10>]>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }
  // CUDA: static __global__ void all_parts(
  // CUDA: for (int i = blockIdx.x * 64 + threadIdx.x; i < 100; i += 192) {
  // CUDA: __shared__ float sums[2];
  // CUDA: static __global__ void all_total(
  // CUDA: for (int part = threadIdx.x; part < 3; part += 32) {
  // CUDA: float *sum_of_part = reinterpret_cast<float *>(scratch + 128);
  kernel.function @all full dims [100] reduced 1 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources []
      attributes {schedule = #kernel.cuda_schedule<[<parts, block, threads = 64, blocks = 3>,
          <total, block, threads = 32, blocks = 1>] parts <3 at [128] in 192 bytes>>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }
  func.func @forward_backward(%x: tensor<240xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 1024>}) {
    %0 = kernel.launch @all(%x) {places = [#kernel.place<activations, 1024>], scratch = #kernel.place<workspace, 0>}
        : (tensor<240xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  kernel.function @one pointwise dims [] reduced 0 outputs 1
      accesses [#kernel.access<[], 0>, #kernel.access<[], 0>] sources []
      attributes {schedule = #kernel.cuda_schedule<[<whole, thread, threads = 32, blocks = 1>]>} {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }
  func.func @evaluate(%x: tensor<240xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 1024>}) {
    %0 = kernel.launch @one(%x) {places = [#kernel.place<activations, 1024>]} : (tensor<240xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// NONE
#arenas = array<i64: 0, 0, 0, 4096, 0, 0>
module attributes {kernel.arena_bytes = #arenas, kernel.arena_lower_bound = #arenas} {
  kernel.function @all full dims [100] reduced 1 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }
  func.func @forward_backward(%x: tensor<240xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 1024>}) {
    %0 = kernel.launch @all(%x) {places = [#kernel.place<activations, 1024>]} : (tensor<240xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  kernel.function @one pointwise dims [] reduced 0 outputs 1
      accesses [#kernel.access<[], 0>, #kernel.access<[], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("y")):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }
  func.func @evaluate(%x: tensor<240xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 1024>}) {
    %0 = kernel.launch @one(%x) {places = [#kernel.place<activations, 1024>]} : (tensor<240xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
