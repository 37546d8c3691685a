// RUN: rm -rf %t && mkdir -p %t
// RUN: %trainc-opt %s -schedule-kernels=target=cuda -plan-memory -mlir-print-debuginfo -o %t/planned.mlir
// RUN: %trainc-emit %t/planned.mlir -o %t/cuda --target cuda
// RUN: %FileCheck %s < %t/cuda/kernels.cu
// RUN: %FileCheck %s --check-prefix=STEP < %t/cuda/step.cpp
//
// How threads share the points of each form of kernel, and what is launched.
// cuda_numbers.test runs these kernels.

#rows = #kernel.access<[192, 1], 0>
#per_row = #kernel.access<[1, 0], 0>
#per_column = #kernel.access<[0, 1], 0>
#single = #kernel.access<[0, 0], 0>

module attributes {train.model = "kernels"} {
  // Vectors where four neighbours are aligned, one value for a broadcast.
  // CHECK: // h.0.mlp
  // CHECK-NEXT: // reads x f32 [40000], bias f32 [192], mean f32 [131]
  // CHECK-NEXT: // writes mlp f32 [64, 192]
  // CHECK-NEXT: static __global__ void wide_points(const float *x, const float *bias, const float *mean,
  // CHECK-NEXT: float *mlp) {
  // CHECK-NEXT: const int point = blockIdx.x * 256 + threadIdx.x;
  // CHECK-NEXT: const int i = point / 48;
  // CHECK-NEXT: const int j = point % 48 * 4;
  // CHECK-NEXT: const float mean_value = mean[i];
  // CHECK-NEXT: const pack<float, 4> x_4 = load_pack<4>(&x[i * 192 + j]);
  // CHECK-NEXT: const pack<float, 4> bias_4 = load_pack<4>(&bias[j]);
  // CHECK-NEXT: pack<float, 4> mlp_4;
  // CHECK-NEXT: #pragma unroll
  // CHECK-NEXT: for (int lane = 0; lane < 4; ++lane) {
  // CHECK-NEXT: mlp_4[lane] = (x_4[lane] + bias_4[lane]) * mean_value;
  // CHECK-NEXT: }
  // CHECK-NEXT: store_pack<4>(&mlp[i * 192 + j], mlp_4);
  // CHECK-NEXT: }
  // CHECK: void wide(const float *x, const float *bias, const float *mean, float *mlp) {
  // CHECK-NEXT: launch("wide", wide_points, {.blocks = 12, .threads = 256}, reads(x, 12288), reads(bias, 192),
  // CHECK-NEXT: reads(mean, 64), writes(mlp, 12288));
  // CHECK-NEXT: }
  kernel.function @wide pointwise dims [64, 192] reduced 0 outputs 1
      accesses [#rows, #per_column, #per_row, #rows] sources ["h.0.mlp"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %b: !kernel.buffer<f32> loc("bias"),
       %s: !kernel.buffer<f32> loc("scale"), %y: !kernel.buffer<f32> loc("h.0.mlp")):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = kernel.load %b : !kernel.buffer<f32> -> f32
      %2 = kernel.load %s : !kernel.buffer<f32> -> f32
      %3 = arith.addf %0, %1 : f32
      %4 = arith.mulf %3, %2 : f32
      kernel.store %4, %y : f32, !kernel.buffer<f32>
    }
  }

  // Element by element: sizes that are not a multiple of four, a transposed input.
  // CHECK: static __global__ void odd_points(
  // CHECK-NEXT: const int point = threadIdx.x;
  // CHECK-NEXT: if (point >= 105)
  // CHECK-NEXT: return;
  // CHECK-NEXT: const int i = point / 35;
  // CHECK-NEXT: const int j = point / 7 % 5;
  // CHECK-NEXT: const int k = point % 7;
  // CHECK: {.blocks = 1, .threads = 128}
  kernel.function @odd pointwise dims [3, 5, 7] reduced 0 outputs 3
      accesses [#kernel.access<[1, 3, 15], 0>, #kernel.access<[35, 7, 1], 0>, #kernel.access<[35, 7, 1], 0>,
                #kernel.access<[35, 7, 1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32>, %d: !kernel.buffer<f64>, %n: !kernel.buffer<i32>, %b: !kernel.buffer<i1>):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.extf %0 : f32 to f64
      %2 = math.exp %1 : f64
      kernel.store %2, %d : f64, !kernel.buffer<f64>
      %hundred = arith.constant 100.0 : f32
      %3 = arith.mulf %0, %hundred : f32
      %4 = arith.fptosi %3 : f32 to i32
      kernel.store %4, %n : i32, !kernel.buffer<i32>
      %zero = arith.constant 0.0 : f32
      %5 = arith.cmpf ogt, %0, %zero : f32
      kernel.store %5, %b : i1, !kernel.buffer<i1>
    }
  }

  // Vectors of every type.
  // CHECK: static __global__ void types_points(
  // CHECK: const pack<uint8_t, 4> flags_4 = load_pack<4>(&flags[i]);
  // CHECK: const pack<double, 4> d_4 = load_pack<4>(&d[i]);
  // CHECK: pack<int64_t, 4> whole_4;
  // CHECK: pack<int32_t, 4> half_4;
  // CHECK: pack<uint8_t, 4> c_4;
  kernel.function @types pointwise dims [840] reduced 0 outputs 3
      accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>, #kernel.access<[1], 0>, #kernel.access<[1], 0>,
                #kernel.access<[1], 0>] sources [] {
  ^bb0(%b: !kernel.buffer<i1> loc("b"), %d: !kernel.buffer<f64> loc("d"), %l: !kernel.buffer<i64> loc("whole"),
       %n: !kernel.buffer<i32> loc("half"), %c: !kernel.buffer<i1> loc("c")):
    kernel.map {
      %0 = kernel.load %b : !kernel.buffer<i1> -> i1
      %1 = kernel.load %d : !kernel.buffer<f64> -> f64
      %thousand = arith.constant 1000.0 : f64
      %2 = arith.mulf %1, %thousand : f64
      %3 = arith.fptosi %2 : f64 to i64
      kernel.store %3, %l : i64, !kernel.buffer<i64>
      %4 = arith.trunci %3 : i64 to i32
      kernel.store %4, %n : i32, !kernel.buffer<i32>
      %zero = arith.constant 0 : i64
      %5 = arith.cmpi sgt, %3, %zero : i64
      %6 = arith.xori %0, %5 : i1
      kernel.store %6, %c : i1, !kernel.buffer<i1>
    }
  }

  // More points than the most blocks have threads.
  // CHECK: for (int i = (blockIdx.x * 256 + threadIdx.x) * 4; i < 8388608; i += 4194304) {
  kernel.function @many pointwise dims [8388608] reduced 0 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }

  // A condition decides whether there is something to read; the tensor's size bounds it.
  // CHECK: static __global__ void masked_points(
  // CHECK: const float in_value = (k <= j) & (k >= 3) ? in[j * 192 + k - 3] : 0.0f;
  // CHECK: launch("masked", {{.*}} reads(in, 12288)
  kernel.function @masked pointwise dims [2, 64, 190] reduced 0 outputs 1
      accesses [#kernel.access<[0, 192, 1], -3>, #kernel.access<[12160, 190, 1], 0>] sources ["mask"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    kernel.map {
      %i = kernel.index 1
      %j = kernel.index 2
      %inside = arith.cmpi sle, %j, %i : i64
      %three = arith.constant 3 : i64
      %later = arith.cmpi sge, %j, %three : i64
      %both = arith.andi %inside, %later : i1
      %0 = kernel.load %x if %both : !kernel.buffer<f32> -> f32
      %1 = math.tanh %0 : f32
      kernel.store %1, %y : f32, !kernel.buffer<f32>
    }
  }

  // An indexed row is read in vectors too. A lane's index where the body asks for it.
  // CHECK: static __global__ void rows_of_points(
  // CHECK: const int64_t ids_value = ids[i];
  // CHECK: const pack<float, 4> in_4 = load_pack<4>(&in[ids_value * 192 + j]);
  // CHECK: static_cast<float>(j + lane)
  // CHECK: reads(in, 1920)
  kernel.function @rows_of pointwise dims [64, 192] reduced 0 outputs 1
      accesses [#per_row, #per_column, #rows] sources ["wte"] {
  ^bb0(%ids: !kernel.buffer<i64> loc("ids"), %table: !kernel.buffer<f32> loc("table"), %y: !kernel.buffer<f32>):
    kernel.map {
      %i = kernel.load %ids : !kernel.buffer<i64> -> i64
      %0 = kernel.load %table at %i : i64 {index_stride = 192 : i64} : !kernel.buffer<f32> -> f32
      %j = kernel.index 1
      %1 = arith.sitofp %j : i64 to f32
      %2 = arith.addf %0, %1 : f32
      kernel.store %2, %y : f32, !kernel.buffer<f32>
    }
  }

  // CHECK: static __global__ void scalar_points(
  // CHECK-NEXT: const float x_value = x[0];
  // CHECK-NEXT: if (threadIdx.x != 0)
  // CHECK-NEXT: return;
  // CHECK: {.blocks = 1, .threads = 32}
  kernel.function @scalar pointwise dims [] reduced 0 outputs 1
      accesses [#kernel.access<[], 0>, #kernel.access<[], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.negf %0 : f32
      kernel.store %1, %y : f32, !kernel.buffer<f32>
    }
  }

  // A warp for each row, which it holds; the last block has rows too many.
  // CHECK: static __global__ void norm_rows(
  // CHECK: const int i = blockIdx.x * 4 + threadIdx.x / 32;
  // CHECK-NEXT: if (i >= 30)
  // CHECK-NEXT: return;
  // CHECK-NEXT: pack<float, 4> x_row[2];
  // CHECK-NEXT: float sum_of_thread = 0.0f;
  // CHECK-NEXT: #pragma unroll
  // CHECK-NEXT: for (int round = 0; round < 2; ++round) {
  // CHECK-NEXT: const int j = (round * 32 + threadIdx.x % 32) * 4;
  // CHECK-NEXT: if (round >= 1 && j >= 192)
  // CHECK-NEXT: continue;
  // CHECK-NEXT: x_row[round] = load_pack<4>(&x[i * 192 + j]);
  // CHECK: const float sum = sum_of_warp(sum_of_thread);
  // CHECK-NEXT: const float mean_value = sum / 192.0f;
  // CHECK: if (threadIdx.x % 32 == 0) {
  // CHECK-NEXT: mean[i] = mean_value;
  // CHECK-NEXT: }
  // CHECK: const float largest = max_of_warp(largest_of_thread);
  // CHECK: {.blocks = 8, .threads = 128}
  kernel.function @norm row dims [30, 192] reduced 1 outputs 3
      accesses [#rows, #per_column, #rows, #per_row, #per_row] sources ["h.0.ln_1"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %w: !kernel.buffer<f32> loc("weight"),
       %y: !kernel.buffer<f32> loc("h.0.ln_1"), %m: !kernel.buffer<f32> loc("mean"), %l: !kernel.buffer<f32>):
    %count = arith.constant 192.0 : f32
    %sum = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    %mean = arith.divf %sum, %count : f32
    kernel.store %mean, %m : f32, !kernel.buffer<f32>
    %var:2 = kernel.reduce [#kernel<reduction add>, #kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %mean : f32
      %2 = arith.mulf %1, %1 : f32
      kernel.yield %2, %0 : f32, f32
    } : f32, f32
    kernel.store %var#1, %l : f32, !kernel.buffer<f32>
    %eps = arith.constant 1.0e-5 : f32
    %v = arith.divf %var#0, %count : f32
    %ve = arith.addf %v, %eps : f32
    %root = math.sqrt %ve : f32
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %mean : f32
      %2 = arith.divf %1, %root : f32
      %3 = kernel.load %w : !kernel.buffer<f32> -> f32
      %4 = arith.mulf %2, %3 : f32
      kernel.store %4, %y : f32, !kernel.buffer<f32>
    }
  }

  // A block for a long row, a value of each warp in shared memory.
  // CHECK: static __global__ void long_rows_rows(
  // CHECK-NEXT: const int i = blockIdx.x;
  // CHECK-NEXT: float largest_of_thread = -INFINITY;
  // CHECK-NEXT: for (int j = threadIdx.x; j < 2051; j += 256) {
  // CHECK: __shared__ float maxima[8];
  // CHECK-NEXT: const float largest = max_of_block(largest_of_thread, maxima);
  // CHECK: __shared__ double sums[8];
  // CHECK-NEXT: const double sum = sum_of_block(sum_of_thread, sums);
  // CHECK: {.blocks = 5, .threads = 256}
  kernel.function @long_rows row dims [5, 2051] reduced 1 outputs 1
      accesses [#kernel.access<[2051, 1], 0>, #kernel.access<[2051, 1], 0>] sources ["softmax"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    %max = kernel.reduce [#kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    %sum = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %max : f32
      %2 = math.exp %1 : f32
      %3 = arith.extf %2 : f32 to f64
      kernel.yield %3 : f64
    } : f64
    %total = arith.truncf %sum : f64 to f32
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %max : f32
      %2 = math.exp %1 : f32
      %3 = arith.divf %2, %total : f32
      kernel.store %3, %y : f32, !kernel.buffer<f32>
    }
  }

  // CHECK: for (int j = threadIdx.x * 4; j < 2052; j += 1024) {
  // CHECK: const int64_t smallest = min_of_block(smallest_of_thread, minima);
  // CHECK: const bool largest = max_of_block(largest_of_thread, maxima);
  kernel.function @long_vectors row dims [3, 2052] reduced 1 outputs 2
      accesses [#kernel.access<[2052, 1], 0>, #per_row, #per_row] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<i64>, %z: !kernel.buffer<i1>):
    %both:2 = kernel.reduce [#kernel<reduction min>, #kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %hundred = arith.constant 100.0 : f32
      %1 = arith.mulf %0, %hundred : f32
      %2 = arith.fptosi %1 : f32 to i64
      %zero = arith.constant 0 : i64
      %3 = arith.cmpi sgt, %2, %zero : i64
      kernel.yield %2, %3 : i64, i1
    } : i64, i1
    kernel.store %both#0, %y : i64, !kernel.buffer<i64>
    kernel.store %both#1, %z : i1, !kernel.buffer<i1>
  }

  // A thread walks a short row.
  // CHECK: static __global__ void short_rows_rows(
  // CHECK-NEXT: const int i = threadIdx.x;
  // CHECK-NEXT: if (i >= 100)
  // CHECK-NEXT: return;
  // CHECK-NEXT: float largest = -INFINITY;
  // CHECK-NEXT: for (int j = 0; j < 10; ++j) {
  kernel.function @short_rows row dims [100, 10] reduced 1 outputs 1
      accesses [#kernel.access<[10, 1], 0>, #kernel.access<[10, 1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    %max = kernel.reduce [#kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %max : f32
      kernel.store %1, %y : f32, !kernel.buffer<f32>
    }
  }

  // Two dimensions that no stride joins are walked as one.
  // CHECK: for (int element = threadIdx.x % 32; element < 48; element += 32) {
  // CHECK-NEXT: const int j = element / 8;
  // CHECK-NEXT: const int k = element % 8;
  kernel.function @walk row dims [7, 6, 8] reduced 2 outputs 1
      accesses [#kernel.access<[48, 1, 6], 0>, #kernel.access<[1, 0, 0], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    %sum = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %sum, %y : f32, !kernel.buffer<f32>
  }

  // The per-row output may take the place of the per-row input: all lanes read it first.
  // CHECK: static __global__ void rescale_rows(
  // CHECK: __syncwarp();
  // CHECK-NEXT: if (threadIdx.x % 32 == 0) {
  // CHECK-NEXT: next[i] =
  kernel.function @rescale row dims [30, 192] reduced 1 outputs 2
      accesses [#rows, #per_row, #rows, #per_row] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %s: !kernel.buffer<f32> loc("scale"),
       %y: !kernel.buffer<f32>, %t: !kernel.buffer<f32> loc("next")):
    %0 = kernel.load %s : !kernel.buffer<f32> -> f32
    kernel.map {
      %1 = kernel.load %x : !kernel.buffer<f32> -> f32
      %2 = arith.mulf %1, %0 : f32
      kernel.store %2, %y : f32, !kernel.buffer<f32>
    }
    %two = arith.constant 2.0 : f32
    %3 = arith.mulf %0, %two : f32
    kernel.store %3, %t : f32, !kernel.buffer<f32>
  }

  // Parts of the rows, then their sums in order.
  // CHECK: static __global__ void column_sums_parts(const float *x, const float *mean, float *sum_of_part,
  // CHECK-NEXT: float *largest_of_part) {
  // CHECK-NEXT: const int j = blockIdx.x * 32 + threadIdx.x % 32;
  // CHECK-NEXT: const int part = blockIdx.y;
  // CHECK-NEXT: float sum_of_thread = 0.0f;
  // CHECK-NEXT: float largest_of_thread = -INFINITY;
  // CHECK-NEXT: if (j < 40) {
  // CHECK-NEXT: for (int i = part * 66 + threadIdx.x / 32; i < minimum<int>((part + 1) * 66, 131); i += 8) {
  // CHECK: __shared__ float sums[256];
  // CHECK-NEXT: sums[threadIdx.x] = sum_of_thread;
  // CHECK: __syncthreads();
  // CHECK-NEXT: if (threadIdx.x >= 32 || j >= 40)
  // CHECK-NEXT: return;
  // CHECK-NEXT: float sum = 0.0f;
  // CHECK-NEXT: for (int thread = threadIdx.x; thread < 256; thread += 32) {
  // CHECK-NEXT: sum += sums[thread];
  // CHECK: sum_of_part[part * 40 + j] = sum;
  // CHECK: static __global__ void column_sums_total(const float *sum_of_part, const float *largest_of_part,
  // CHECK: for (int part = 0; part < 2; ++part) {
  // CHECK-NEXT: sum += sum_of_part[part * 40 + j];
  // CHECK: void column_sums(const float *x, const float *mean, float *out, float *out_2, char *scratch) {
  // CHECK-NEXT: float *sum_of_part = reinterpret_cast<float *>(scratch);
  // CHECK-NEXT: float *largest_of_part = reinterpret_cast<float *>(scratch + 320);
  // CHECK-NEXT: launch("column_sums", column_sums_parts, {.blocks = 2, .threads = 256, .blocks_y = 2},
  // CHECK: launch("column_sums", column_sums_total, {.blocks = 1, .threads = 64},
  kernel.function @column_sums column dims [131, 40] reduced 1 outputs 2
      accesses [#kernel.access<[40, 1], 0>, #per_row, #per_column, #per_column] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %m: !kernel.buffer<f32> loc("mean"), %y: !kernel.buffer<f32>,
       %z: !kernel.buffer<f32>):
    %s:2 = kernel.reduce [#kernel<reduction add>, #kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = kernel.load %m : !kernel.buffer<f32> -> f32
      %2 = arith.mulf %0, %1 : f32
      kernel.yield %2, %0 : f32, f32
    } : f32, f32
    %two = arith.constant 2.0 : f32
    %t = arith.divf %s#0, %two : f32
    kernel.store %t, %y : f32, !kernel.buffer<f32>
    kernel.store %s#1, %z : f32, !kernel.buffer<f32>
  }

  // One part: a single kernel. The columns are two dimensions.
  // CHECK: static __global__ void one_part_columns(
  // CHECK-NEXT: const int column = blockIdx.x * 32 + threadIdx.x % 32;
  // CHECK: for (int i = threadIdx.x / 32; i < 64; i += 8) {
  // CHECK: __syncthreads();
  kernel.function @one_part column dims [64, 5, 7] reduced 1 outputs 1
      accesses [#kernel.access<[35, 1, 5], 0>, #kernel.access<[0, 7, 1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // Few rows: a thread for each column.
  // CHECK: static __global__ void few_rows_columns(
  // CHECK-NEXT: const int j = blockIdx.x * 256 + threadIdx.x;
  // CHECK: for (int i = 0; i < 8; ++i) {
  kernel.function @few_rows column dims [8, 300] reduced 1 outputs 1
      accesses [#kernel.access<[300, 1], 0>, #per_column] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // Reductions that need each other: a warp for each column.
  // CHECK: static __global__ void column_softmax_columns(
  // CHECK-NEXT: const int j = blockIdx.x * 4 + threadIdx.x / 32;
  // CHECK: for (int i = threadIdx.x % 32; i < 70; i += 32) {
  kernel.function @column_softmax column dims [70, 33] reduced 1 outputs 1
      accesses [#kernel.access<[33, 1], 0>, #per_column] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    %m = kernel.reduce [#kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %m : f32
      %2 = math.exp %1 : f32
      kernel.yield %2 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // Everything: a block where that is little, else blocks and one that adds what they found.
  // CHECK: static __global__ void some_total(
  // CHECK: for (int element = threadIdx.x; element < 3000; element += 256) {
  kernel.function @some full dims [100, 30] reduced 2 outputs 1
      accesses [#kernel.access<[1, 100], 0>, #single] sources ["loss"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32>):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.mulf %0, %0 : f32
      kernel.yield %1 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // CHECK: static __global__ void all_parts(
  // CHECK: for (int i = (blockIdx.x * 256 + threadIdx.x) * 4; i < 40000; i += 10240) {
  // CHECK: const double sum = sum_of_block(sum_of_thread, sums);
  // CHECK-NEXT: if (threadIdx.x == 0) {
  // CHECK-NEXT: sum_of_part[blockIdx.x] = sum;
  // CHECK: static __global__ void all_total(
  // CHECK: for (int part = threadIdx.x; part < 10; part += 256) {
  // CHECK-NEXT: sum_of_thread += sum_of_part[part];
  // CHECK-NEXT: }
  // CHECK-NEXT: __shared__ double sums[8];
  // CHECK-NEXT: const double sum = sum_of_block(sum_of_thread, sums);
  // CHECK-NEXT: if (threadIdx.x == 0) {
  // CHECK: launch("all", all_parts, {.blocks = 10, .threads = 256}, reads(x, 40000),
  // CHECK: launch("all", all_total, {.blocks = 1, .threads = 256}, reads(sum_of_part, 10),
  kernel.function @all full dims [40000] reduced 1 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>, #kernel.access<[0], 0>] sources ["norm"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %f: !kernel.buffer<f32> loc("factor"), %y: !kernel.buffer<f64>):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.extf %0 : f32 to f64
      %2 = arith.mulf %1, %1 : f64
      kernel.yield %2 : f64
    } : f64
    %0 = kernel.load %f : !kernel.buffer<f32> -> f32
    %1 = arith.extf %0 : f32 to f64
    %2 = math.sqrt %s : f64
    %3 = arith.mulf %2, %1 : f64
    kernel.store %3, %y : f64, !kernel.buffer<f64>
  }

  // What a reduction's loop computes anyway is stored in it: by the parts, once.
  // CHECK: static __global__ void kept_columns_parts(const float *x, const float *in, float *kept,
  // CHECK-NEXT: float *sum_of_part) {
  // CHECK: kept[i * 40 + j] = kept_value;
  // CHECK-NEXT: sum_of_thread += kept_value;
  // CHECK: static __global__ void kept_columns_total(const float *sum_of_part, float *{{.*}}) {
  // CHECK-NOT: kept[
  // CHECK: launch("kept_columns", kept_columns_parts, {.blocks = 2, .threads = 256, .blocks_y = 6},
  kernel.function @kept_columns column dims [400, 40] reduced 1 outputs 2
      accesses [#kernel.access<[40, 1], 0>, #per_row, #kernel.access<[40, 1], 0>, #per_column] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %m: !kernel.buffer<f32> loc("mean"), %y: !kernel.buffer<f32> loc("kept"),
       %z: !kernel.buffer<f32>):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = kernel.load %m : !kernel.buffer<f32> -> f32
      %2 = arith.mulf %0, %1 : f32
      kernel.store %2, %y : f32, !kernel.buffer<f32> loc("kept")
      kernel.yield %2 : f32
    } : f32
    kernel.store %s, %z : f32, !kernel.buffer<f32>
  }

  // CHECK: static __global__ void kept_all_parts(
  // CHECK: pack<float, 4> kept_4;
  // CHECK: kept_4[lane] = kept_value;
  // CHECK: store_pack<4>(&kept[i], kept_4);
  kernel.function @kept_all full dims [40000] reduced 1 outputs 2
      accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>, #kernel.access<[0], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("kept"), %z: !kernel.buffer<f32>):
    %s = kernel.reduce [#kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.mulf %0, %0 : f32
      kernel.store %1, %y : f32, !kernel.buffer<f32> loc("kept")
      kernel.yield %1 : f32
    } : f32
    kernel.store %s, %z : f32, !kernel.buffer<f32>
  }

  // STEP: kernels::column_sums({{.*}}m[at::x]{{.*}}m[at::mean]
  // STEP-SAME: m.scratch(0));
  // Eight numbers of 16 bits make 16 bytes. A row that several phases read stays in registers, and its end is a part of a
  // vector; what is between rows is not touched.
  // CHECK: static __global__ void in_16_bits_points(
  // CHECK: const pack<float, 8> x_8 = load_pack<8>(&x[i]);
  // CHECK: store_pack<8>(&small[i], small_8);
  kernel.function @in_16_bits pointwise dims [40000] reduced 0 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<bf16> loc("small")):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<bf16>
    }
  }

  // CHECK: static __global__ void held_rows_rows(
  // CHECK: pack<bfloat16, 8> in_row[2];
  // CHECK: #pragma unroll
  // CHECK-NEXT: for (int round = 0; round < 2; ++round) {
  // CHECK-NEXT: const int j = (round * 256 + threadIdx.x) * 8;
  // CHECK-NEXT: if (round >= 1 && j >= 2051)
  // CHECK-NEXT: continue;
  // CHECK-NEXT: const int count = round < 1 ? 8 : minimum<int>(8, 2051 - j);
  // CHECK-NEXT: in_row[round] = load_part<8>(count, &in[i * 2056 + j]);
  // CHECK-NEXT: #pragma unroll
  // CHECK-NEXT: for (int lane = 0; lane < 8; ++lane) {
  // CHECK-NEXT: if (lane < count) {
  // CHECK-NOT: &in[
  // CHECK: held_rows_value_8[lane] =
  // CHECK: store_part<8>(count, &held_rows_value[i * 2056 + j], held_rows_value_8);
  kernel.function @held_rows row dims [5, 2051] reduced 1 outputs 2
      accesses [#kernel.access<[2056, 1], 0>, #kernel.access<[2056, 1], 0>, #per_row] sources ["held_rows"] {
  ^bb0(%x: !kernel.buffer<bf16> loc("small"), %y: !kernel.buffer<bf16> loc("held_rows_value"),
       %z: !kernel.buffer<f32>):
    %max = kernel.reduce [#kernel<reduction max>] {
      %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
      kernel.yield %0 : f32
    } : f32
    %sum = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
      %1 = arith.subf %0, %max : f32
      %2 = math.exp %1 : f32
      kernel.yield %2 : f32
    } : f32
    kernel.store %sum, %z : f32, !kernel.buffer<f32>
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
      %1 = arith.subf %0, %max : f32
      kernel.store %1, %y : f32, !kernel.buffer<bf16>
    }
  }

  kernel.function @unpadded pointwise dims [5, 2051] reduced 0 outputs 1
      accesses [#kernel.access<[2056, 1], 0>, #kernel.access<[2051, 1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<bf16>, %y: !kernel.buffer<f32>):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }

  // The room between rows is the tensor's, where a condition decides what is read.
  // CHECK: launch("some_of_padded", some_of_padded_points, {{.*}} reads({{[a-z_]+}}, 10280),
  kernel.function @some_of_padded pointwise dims [5, 2051] reduced 0 outputs 1
      accesses [#kernel.access<[2056, 1], 0>, #kernel.access<[2051, 1], 0>] sources ["some_of_padded"] {
  ^bb0(%x: !kernel.buffer<bf16>, %y: !kernel.buffer<f32>):
    kernel.map {
      %j = kernel.index 1
      %three = arith.constant 3 : i64
      %later = arith.cmpi sge, %j, %three : i64
      %0 = kernel.load %x if %later : !kernel.buffer<bf16> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }

  // A warp's row is held, too; its lanes share it evenly.
  // CHECK: static __global__ void held_by_warps_rows(
  // CHECK: pack<bfloat16, 8> in_row[3];
  // CHECK: const int j = (round * 32 + threadIdx.x % 32) * 8;
  // CHECK-NEXT: in_row[round] = load_pack<8>(&in[i * 768 + j]);
  kernel.function @held_by_warps row dims [52, 768] reduced 1 outputs 1
      accesses [#kernel.access<[768, 1], 0>, #kernel.access<[768, 1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<bf16> loc("small"), %y: !kernel.buffer<f32>):
    %sum = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
      %1 = arith.subf %0, %sum : f32
      kernel.store %1, %y : f32, !kernel.buffer<f32>
    }
  }

  // Columns of a thread side by side; the last block has a few.
  // CHECK: static __global__ void packed_columns_parts(const bfloat16 *in, const float *mean,
  // CHECK: float sum_of_thread[8];
  // CHECK: const int j = (blockIdx.x * 32 + threadIdx.x % 32) * 8;
  // CHECK-NEXT: if (j < 264) {
  // CHECK: const pack<bfloat16, 8> in_8 = load_pack<8>(&in[i * 264 + j]);
  // CHECK: sum_of_thread[lane] += static_cast<float>(in_8[lane]) * mean_value;
  // CHECK: sums[threadIdx.x * 8 + lane] = sum_of_thread[lane];
  // CHECK: if (threadIdx.x >= 256)
  // CHECK-NEXT: return;
  // CHECK-NEXT: const int j = blockIdx.x * 256 + threadIdx.x;
  // CHECK-NEXT: if (j >= 264)
  // CHECK-NEXT: return;
  // CHECK: for (int thread = threadIdx.x; thread < 2048; thread += 256) {
  // CHECK: sum_of_part[part * 264 + j] = sum;
  kernel.function @packed_columns column dims [131, 264] reduced 1 outputs 1
      accesses [#kernel.access<[264, 1], 0>, #per_row, #per_column] sources [] {
  ^bb0(%x: !kernel.buffer<bf16> loc("small"), %s: !kernel.buffer<f32> loc("scale"), %y: !kernel.buffer<f32>):
    %sum = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<bf16> -> f32
      %1 = kernel.load %s : !kernel.buffer<f32> -> f32
      %2 = arith.mulf %0, %1 : f32
      kernel.yield %2 : f32
    } : f32
    kernel.store %sum, %y : f32, !kernel.buffer<f32>
  }

  func.func @evaluate(
      %x: tensor<40000xf32> {train.role = #train.input<"x">},
      %bias: tensor<192xf32> {train.role = #train.input<"bias">},
      %scale: tensor<131xf32> {train.role = #train.input<"mean">},
      %flags: tensor<840xi1> {train.role = #train.input<"flags">},
      %d: tensor<840xf64> {train.role = #train.input<"d">},
      %ids: tensor<64xi64> {train.role = #train.input<"ids", index_bound = 10>})
      -> (tensor<64x192xf32> {train.role = #train.output<"wide">},
          tensor<105xf64> {train.role = #train.output<"odd">},
          tensor<105xi32> {train.role = #train.output<"odd_i32">},
          tensor<105xi1> {train.role = #train.output<"odd_i1">},
          tensor<840xi64> {train.role = #train.output<"types">},
          tensor<840xi32> {train.role = #train.output<"types_i32">},
          tensor<840xi1> {train.role = #train.output<"types_i1">},
          tensor<2x64x190xf32> {train.role = #train.output<"masked">},
          tensor<64x192xf32> {train.role = #train.output<"rows_of">},
          tensor<f32> {train.role = #train.output<"scalar">},
          tensor<30x192xf32> {train.role = #train.output<"norm">},
          tensor<30xf32> {train.role = #train.output<"mean_of_row">},
          tensor<30xf32> {train.role = #train.output<"largest_of_row">},
          tensor<5x2051xf32> {train.role = #train.output<"long_rows">},
          tensor<3xi64> {train.role = #train.output<"long_vectors">},
          tensor<3xi1> {train.role = #train.output<"long_vectors_i1">},
          tensor<100x10xf32> {train.role = #train.output<"short_rows">},
          tensor<7xf32> {train.role = #train.output<"walk">},
          tensor<30x192xf32> {train.role = #train.output<"rescaled">},
          tensor<30xf32> {train.role = #train.output<"rescaled_by">},
          tensor<40xf32> {train.role = #train.output<"column_sums">},
          tensor<40xf32> {train.role = #train.output<"column_maxima">},
          tensor<35xf32> {train.role = #train.output<"one_part">},
          tensor<300xf32> {train.role = #train.output<"few_rows">},
          tensor<33xf32> {train.role = #train.output<"column_softmax">},
          tensor<f32> {train.role = #train.output<"some">},
          tensor<f64> {train.role = #train.output<"all">},
          tensor<400x40xf32> {train.role = #train.output<"kept_columns">},
          tensor<40xf32> {train.role = #train.output<"kept_columns_sum">},
          tensor<40000xf32> {train.role = #train.output<"kept_all">},
          tensor<f32> {train.role = #train.output<"kept_all_max">},
          tensor<5x2051xf32> {train.role = #train.output<"held_rows">},
          tensor<5x2051xf32> {train.role = #train.output<"some_of_padded">},
          tensor<5xf32> {train.role = #train.output<"held_rows_sum">},
          tensor<52x768xf32> {train.role = #train.output<"held_by_warps">},
          tensor<264xf32> {train.role = #train.output<"packed_columns">},
          tensor<f32> {train.role = #train.loss}) {
    %wide = kernel.launch @wide(%x, %bias, %scale) : (tensor<40000xf32>, tensor<192xf32>, tensor<131xf32>) -> tensor<64x192xf32>
    %odd:3 = kernel.launch @odd(%x) : (tensor<40000xf32>) -> (tensor<105xf64>, tensor<105xi32>, tensor<105xi1>)
    %types:3 = kernel.launch @types(%flags, %d) : (tensor<840xi1>, tensor<840xf64>) -> (tensor<840xi64>, tensor<840xi32>, tensor<840xi1>)
    %masked = kernel.launch @masked(%wide) : (tensor<64x192xf32>) -> tensor<2x64x190xf32>
    %table = kernel.launch @table(%x) : (tensor<40000xf32>) -> tensor<10x192xf32>
    %rows = kernel.launch @rows_of(%ids, %table) : (tensor<64xi64>, tensor<10x192xf32>) -> tensor<64x192xf32>
    %scalar = kernel.launch @scalar(%x) : (tensor<40000xf32>) -> tensor<f32>
    %norm:3 = kernel.launch @norm(%x, %bias) : (tensor<40000xf32>, tensor<192xf32>) -> (tensor<30x192xf32>, tensor<30xf32>, tensor<30xf32>)
    %long = kernel.launch @long_rows(%x) : (tensor<40000xf32>) -> tensor<5x2051xf32>
    %vectors:2 = kernel.launch @long_vectors(%x) : (tensor<40000xf32>) -> (tensor<3xi64>, tensor<3xi1>)
    %short = kernel.launch @short_rows(%x) : (tensor<40000xf32>) -> tensor<100x10xf32>
    %walk = kernel.launch @walk(%x) : (tensor<40000xf32>) -> tensor<7xf32>
    %copy:3 = kernel.launch @norm(%x, %bias) : (tensor<40000xf32>, tensor<192xf32>) -> (tensor<30x192xf32>, tensor<30xf32>, tensor<30xf32>)
    %rescaled:2 = kernel.launch @rescale(%copy#0, %copy#1) : (tensor<30x192xf32>, tensor<30xf32>) -> (tensor<30x192xf32>, tensor<30xf32>)
    %columns:2 = kernel.launch @column_sums(%x, %scale) : (tensor<40000xf32>, tensor<131xf32>) -> (tensor<40xf32>, tensor<40xf32>)
    %one = kernel.launch @one_part(%x) : (tensor<40000xf32>) -> tensor<35xf32>
    %few = kernel.launch @few_rows(%x) : (tensor<40000xf32>) -> tensor<300xf32>
    %softmax = kernel.launch @column_softmax(%x) : (tensor<40000xf32>) -> tensor<33xf32>
    %some = kernel.launch @some(%x) : (tensor<40000xf32>) -> tensor<f32>
    %all = kernel.launch @all(%x, %scalar) : (tensor<40000xf32>, tensor<f32>) -> tensor<f64>
    %kept:2 = kernel.launch @kept_columns(%x, %long) : (tensor<40000xf32>, tensor<5x2051xf32>) -> (tensor<400x40xf32>, tensor<40xf32>)
    %all_kept:2 = kernel.launch @kept_all(%x) : (tensor<40000xf32>) -> (tensor<40000xf32>, tensor<f32>)
    %small = kernel.launch @in_16_bits(%x) : (tensor<40000xf32>) -> tensor<40000xbf16>
    %held:2 = kernel.launch @held_rows(%small) : (tensor<40000xbf16>) -> (tensor<5x2051xbf16, 2056 : i64>, tensor<5xf32>)
    %unpadded = kernel.launch @unpadded(%held#0) : (tensor<5x2051xbf16, 2056 : i64>) -> tensor<5x2051xf32>
    %some_padded = kernel.launch @some_of_padded(%held#0) : (tensor<5x2051xbf16, 2056 : i64>) -> tensor<5x2051xf32>
    %by_warps = kernel.launch @held_by_warps(%small) : (tensor<40000xbf16>) -> tensor<52x768xf32>
    %packed = kernel.launch @packed_columns(%small, %scale) : (tensor<40000xbf16>, tensor<131xf32>) -> tensor<264xf32>
    %loss = kernel.launch @some(%x) : (tensor<40000xf32>) -> tensor<f32>
    return %wide, %odd#0, %odd#1, %odd#2, %types#0, %types#1, %types#2, %masked, %rows, %scalar,
        %norm#0, %norm#1, %norm#2, %long, %vectors#0, %vectors#1, %short, %walk, %rescaled#0, %rescaled#1,
        %columns#0, %columns#1, %one, %few, %softmax, %some, %all, %kept#0, %kept#1,
        %all_kept#0, %all_kept#1, %unpadded, %some_padded, %held#1, %by_warps, %packed, %loss
        : tensor<64x192xf32>, tensor<105xf64>, tensor<105xi32>, tensor<105xi1>, tensor<840xi64>, tensor<840xi32>,
          tensor<840xi1>, tensor<2x64x190xf32>, tensor<64x192xf32>, tensor<f32>, tensor<30x192xf32>,
          tensor<30xf32>, tensor<30xf32>, tensor<5x2051xf32>, tensor<3xi64>, tensor<3xi1>, tensor<100x10xf32>,
          tensor<7xf32>, tensor<30x192xf32>, tensor<30xf32>, tensor<40xf32>, tensor<40xf32>, tensor<35xf32>,
          tensor<300xf32>, tensor<33xf32>, tensor<f32>, tensor<f64>, tensor<400x40xf32>, tensor<40xf32>,
          tensor<40000xf32>, tensor<f32>, tensor<5x2051xf32>, tensor<5x2051xf32>, tensor<5xf32>, tensor<52x768xf32>, tensor<264xf32>,
          tensor<f32>
  }

  func.func @forward_backward(
      %x: tensor<40000xf32> {train.role = #train.input<"x">},
      %bias: tensor<192xf32> {train.role = #train.input<"bias">},
      %scale: tensor<131xf32> {train.role = #train.input<"mean">},
      %flags: tensor<840xi1> {train.role = #train.input<"flags">},
      %d: tensor<840xf64> {train.role = #train.input<"d">},
      %ids: tensor<64xi64> {train.role = #train.input<"ids", index_bound = 10>})
      -> (tensor<f32> {train.role = #train.loss}) {
    %loss = kernel.launch @some(%x) : (tensor<40000xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }

  kernel.function @table pointwise dims [1920] reduced 0 outputs 1
      accesses [#kernel.access<[1], 640>, #kernel.access<[1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }
}
