// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section KERNELS %s | %trainc-opt -schedule-kernels=target=cpu | %FileCheck %s --check-prefix=CPU
// RUN: %section KERNELS %s | %trainc-opt -schedule-kernels=target=cuda | %FileCheck %s --check-prefix=CUDA
// RUN: %section KERNELS %s | %trainc-opt -schedule-kernels=target=cuda | %trainc-opt | %FileCheck %s --check-prefix=CUDA
// RUN: %section KERNELS %s | %trainc-opt -schedule-kernels=target=cuda -plan-memory | %FileCheck %s --check-prefix=PLAN
// RUN: %section KERNELS %s | not %trainc-opt -schedule-kernels=target=abacus 2>&1 | %FileCheck %s --check-prefix=TARGET
// RUN: %trainc-opt %s -split-input-file -verify-diagnostics -o %t.mlir

// KERNELS
// TARGET: schedule-kernels: option 'target=abacus': expects one of cpu, cuda; found 'abacus'
// TARGET-NEXT: note: try: target=cpu

// A thread for four points. On a CPU threads share all loops but that of vectors.
// CPU: kernel.function @points {{.*}}schedule = #kernel.cpu_schedule<parallel = 1>}
// CUDA: kernel.function @points {{.*}}schedule = #kernel.cuda_schedule<[<whole, thread, threads = 256, blocks = 12, vector = 4>]>}
kernel.function @points pointwise dims [64, 192] reduced 0 outputs 1
    accesses [#kernel.access<[1, 64], 0>, #kernel.access<[192, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// No vectors where sizes are odd; too few points for threads of a CPU.
// CPU: kernel.function @odd {{.*}}schedule = #kernel.cpu_schedule<parallel = 0>}
// CUDA: kernel.function @odd {{.*}}schedule = #kernel.cuda_schedule<[<whole, thread, threads = 64, blocks = 1>]>}
kernel.function @odd pointwise dims [35] reduced 0 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// Beyond the most blocks they loop.
// CPU: kernel.function @many {{.*}}schedule = #kernel.cpu_schedule<parallel = 1>}
// CUDA: kernel.function @many {{.*}}schedule = #kernel.cuda_schedule<[<whole, thread, threads = 256, blocks = 4096, vector = 4>]>}
kernel.function @many pointwise dims [8388608] reduced 0 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// A scalar has no dimensions.
// CPU: kernel.function @scalar {{.*}}schedule = #kernel.cpu_schedule<parallel = 0>}
// CUDA: kernel.function @scalar {{.*}}schedule = #kernel.cuda_schedule<[<whole, thread, threads = 32, blocks = 1>]>}
kernel.function @scalar pointwise dims [] reduced 0 outputs 1
    accesses [#kernel.access<[], 0>, #kernel.access<[], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// A row is a thread's, a warp's or a block's by its length.
// CPU: kernel.function @short_rows {{.*}}schedule = #kernel.cpu_schedule<parallel = 1>}
// CUDA: kernel.function @short_rows {{.*}}schedule = #kernel.cuda_schedule<[<whole, thread, threads = 256, blocks = 4>]>}
kernel.function @short_rows row dims [1000, 10] reduced 1 outputs 1
    accesses [#kernel.access<[10, 1], 0>, #kernel.access<[1, 0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// What two phases read of a row stays with its threads: eight numbers of 16 bits at once, also where the row's end cuts
// them. Of f32 a row of 50257 is too long for the registers of a block.
// CUDA: kernel.function @held {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 1024, blocks = 64, vector = 8, rounds = 7>]>}
kernel.function @held row dims [64, 50257] reduced 1 outputs 1
    accesses [#kernel.access<[50304, 1], 0>, #kernel.access<[50304, 1], 0>] sources [] {
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

// CUDA: kernel.function @not_held {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 64>]>}
kernel.function @not_held row dims [64, 50257] reduced 1 outputs 1
    accesses [#kernel.access<[50304, 1], 0>, #kernel.access<[50304, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    %1 = arith.subf %0, %s : f32
    kernel.store %1, %y : f32, !kernel.buffer<f32>
  }
}

// CPU: kernel.function @rows {{.*}}schedule = #kernel.cpu_schedule<parallel = 0>}
// CUDA: kernel.function @rows {{.*}}schedule = #kernel.cuda_schedule<[<whole, warp, threads = 128, blocks = 8, vector = 4>]>}
kernel.function @rows row dims [30, 192] reduced 1 outputs 1
    accesses [#kernel.access<[192, 1], 0>, #kernel.access<[1, 0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// CPU: kernel.function @long_rows {{.*}}schedule = #kernel.cpu_schedule<parallel = 1>}
// CUDA: kernel.function @long_rows {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 5>]>}
kernel.function @long_rows row dims [5, 4098] reduced 1 outputs 1
    accesses [#kernel.access<[4098, 1], 0>, #kernel.access<[1, 0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// 32 parts of 64 rows, two reductions: 2 x 32 x 768 elements of 4 bytes. On a CPU chunks of rows.
// CPU: kernel.function @columns {{.*}}schedule = #kernel.cpu_schedule<parallel = 2, block = 256, chunk = 342>}
// CUDA: kernel.function @columns {{.*}}schedule = #kernel.cuda_schedule<[<parts, block, threads = 256, blocks = 6, blocks_y = 32, columns = 128, vector = 4>, <total, thread, threads = 256, blocks = 3>] parts <32 of 64 rows at [0, 98304] in 196608 bytes>>}
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

// Too few rows for parts, enough for a block of 32 columns.
// CPU: kernel.function @one_part {{.*}}schedule = #kernel.cpu_schedule<parallel = 0, block = 35>}
// CUDA: kernel.function @one_part {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 2, columns = 32>]>}
kernel.function @one_part column dims [64, 35] reduced 1 outputs 1
    accesses [#kernel.access<[35, 1], 0>, #kernel.access<[0, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// Few rows: a thread for each column, on a CPU blocks of columns.
// CPU: kernel.function @few_rows {{.*}}schedule = #kernel.cpu_schedule<parallel = 1, block = 256>}
// CUDA: kernel.function @few_rows {{.*}}schedule = #kernel.cuda_schedule<[<whole, thread, threads = 256, blocks = 16>]>}
kernel.function @few_rows column dims [8, 4096] reduced 1 outputs 1
    accesses [#kernel.access<[4096, 1], 0>, #kernel.access<[0, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// Reductions that need each other are not cut.
// CPU: kernel.function @column_twice {{.*}}schedule = #kernel.cpu_schedule<parallel = 1, block = 33>}
// CUDA: kernel.function @column_twice {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 33>]>}
kernel.function @column_twice column dims [2048, 33] reduced 1 outputs 1
    accesses [#kernel.access<[33, 1], 0>, #kernel.access<[0, 1], 0>] sources [] {
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

// CPU: kernel.function @twice {{.*}}schedule = #kernel.cpu_schedule<parallel = 1, block = 4096>}
// CUDA: kernel.function @twice {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 1, vector = 4>]>}
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

// One part for each 4096 elements.
// CPU: kernel.function @all {{.*}}schedule = #kernel.cpu_schedule<parallel = 1, block = 4096>}
// CUDA: kernel.function @all {{.*}}schedule = #kernel.cuda_schedule<[<parts, block, threads = 256, blocks = 16, vector = 4>, <total, block, threads = 256, blocks = 1>] parts <16 at [0] in 128 bytes>>}
kernel.function @all full dims [65536] reduced 1 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f64>, %y: !kernel.buffer<f64>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f64> -> f64
    kernel.yield %0 : f64
  } : f64
  kernel.store %s, %y : f64, !kernel.buffer<f64>
}

// A single column is summed as everything is; one block is enough for little.
// CPU: kernel.function @some {{.*}}schedule = #kernel.cpu_schedule<parallel = 0>}
// CUDA: kernel.function @some {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 1, vector = 4>]>}
kernel.function @some column dims [12000] reduced 1 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// Whole rows of the last dimension where there are several.
// CPU: kernel.function @strided {{.*}}schedule = #kernel.cpu_schedule<parallel = 1, block = 43>}
// CUDA: kernel.function @strided {{.*}}schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 1>]>}
kernel.function @strided full dims [96, 96] reduced 2 outputs 1
    accesses [#kernel.access<[1, 96], 0>, #kernel.access<[0, 0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// PLAN: func.func @forward_backward
// PLAN: kernel.launch @columns
// PLAN-SAME: scratch = #kernel.place<workspace, 0>
func.func @forward_backward(%x: tensor<2048x768xf32> {train.role = #train.input<"x">})
    -> (tensor<768xf32> {train.role = #train.output<"s">}, tensor<768xf32> {train.role = #train.output<"m">}) {
  %0:2 = kernel.launch @columns(%x) : (tensor<2048x768xf32>) -> (tensor<768xf32>, tensor<768xf32>)
  return %0#0, %0#1 : tensor<768xf32>, tensor<768xf32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: threads share 2 loops of 1}}
kernel.function @misfit pointwise dims [64, 192] reduced 0 outputs 1
    accesses [#kernel.access<[192, 1], 0>, #kernel.access<[192, 1], 0>] sources []
    attributes {schedule = #kernel.cpu_schedule<parallel = 2>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// -----

// expected-error@+1 {{has a schedule that does not fit: a block has 0 columns of 40}}
kernel.function @misfit column dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[0, 1], 0>] sources []
    attributes {schedule = #kernel.cpu_schedule<parallel = 1>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: a block of 4096 in form row}}
kernel.function @misfit row dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[1, 0], 0>] sources []
    attributes {schedule = #kernel.cpu_schedule<parallel = 1, block = 4096>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: rows are cut into chunks of 64}}
kernel.function @misfit column dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[0, 1], 0>] sources []
    attributes {schedule = #kernel.cpu_schedule<parallel = 2, block = 40, chunk = 64>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: a block has 100 threads}}
kernel.function @misfit pointwise dims [64] reduced 0 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<whole, thread, threads = 100, blocks = 1>]>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// -----

// expected-error@+1 {{has a schedule that does not fit: 1 x 2 blocks}}
kernel.function @misfit pointwise dims [64] reduced 0 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<whole, thread, threads = 64, blocks = 1, blocks_y = 2>]>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// -----

// expected-error@+1 {{has a schedule that does not fit: vectors of 4 elements}}
kernel.function @misfit pointwise dims [63] reduced 0 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<whole, thread, threads = 32, blocks = 1, vector = 4>]>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// -----

// expected-error@+1 {{has a schedule that does not fit: a block works on 32 columns}}
kernel.function @misfit row dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[1, 0], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<whole, block, threads = 256, blocks = 2, columns = 32>]>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: a warp works on a result}}
kernel.function @misfit pointwise dims [64] reduced 0 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<whole, warp, threads = 64, blocks = 1>]>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}

// -----

// expected-error@+1 {{has a schedule that does not fit: blocks for 56 results of 64}}
kernel.function @misfit row dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[1, 0], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<whole, warp, threads = 128, blocks = 14>]>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: expects one device function for the whole kernel, or two with `parts`}}
kernel.function @misfit row dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[1, 0], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<total, warp, threads = 128, blocks = 16>]>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: only a kernel.reduce that stands alone, in form column or full, has parts}}
kernel.function @misfit row dims [2, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[1, 0], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<parts, block, threads = 32, blocks = 2>, <total, block, threads = 32, blocks = 1>] parts <2 at [0] in 64 bytes>>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: 2 offsets for 1 partial results}}
kernel.function @misfit full dims [64] reduced 1 outputs 1
    accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<parts, block, threads = 32, blocks = 2>, <total, block, threads = 32, blocks = 1>] parts <2 at [0, 64] in 128 bytes>>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: 2 parts of 31 rows of 64}}
kernel.function @misfit column dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[0, 1], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<parts, block, threads = 32, blocks = 2, blocks_y = 2, columns = 32>, <total, thread, threads = 64, blocks = 1>] parts <2 of 31 rows at [0] in 320 bytes>>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}

// -----

// expected-error@+1 {{has a schedule that does not fit: partial results 0 do not fit in scratch from 0 to 256}}
kernel.function @misfit column dims [64, 40] reduced 1 outputs 1
    accesses [#kernel.access<[40, 1], 0>, #kernel.access<[0, 1], 0>] sources []
    attributes {schedule = #kernel.cuda_schedule<[<parts, block, threads = 32, blocks = 2, blocks_y = 2, columns = 32>, <total, thread, threads = 64, blocks = 1>] parts <2 of 32 rows at [0] in 256 bytes>>} {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  %s = kernel.reduce [#kernel<reduction add>] {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : f32
  kernel.store %s, %y : f32, !kernel.buffer<f32>
}
