// RUN: rm -rf %t && mkdir -p %t && %trainc-opt %s -schedule-kernels -mlir-print-debuginfo -o %t/scheduled.mlir
// RUN: %trainc-emit %t/scheduled.mlir -o %t
// RUN: FileCheck %s --check-prefix=KERNELS < %t/kernels.cpp
// RUN: FileCheck %s --check-prefix=MEMORY < %t/memory.h
// RUN: FileCheck %s --check-prefix=STEP < %t/step.cpp
// RUN: cd %t && for file in *.cpp; do g++ -std=c++20 -O3 -march=x86-64-v3 -fopenmp -Wall -Wextra -Werror -I . -I %S/../.. -c $file -o $file.o || exit 1; done
// RUN: FileCheck %s --check-prefix=TRAINER < %t/trainer.cpp
//
// A hand-written module with a kernel of each form: names, comments and loops of the source.

#whole = #kernel.access<[192, 1], 0>
#per_row = #kernel.access<[1, 0], 0>
#per_column = #kernel.access<[0, 1], 0>

module attributes {
  kernel.arena_bytes = array<i64: 1024, 1024, 0, 1000000, 4096, 0>,
  kernel.arena_lower_bound = array<i64: 1024, 1024, 0, 1000000, 4096, 0>,
  train.layout = #train.layout<runs = [0, 192, 0, 0], parameters = [#train.placed<"ln.weight", undecayed at 0, 192 elements>]>
} {
  // KERNELS: // h.0.ln_1
  // KERNELS-NEXT: // reads x f32 [64, 192], ln_weight f32 [192]
  // KERNELS-NEXT: // writes ln_1 f32 [64, 192], mean f32 [64]
  // KERNELS-NEXT: void ln_1(const float *x, const float *ln_weight, float *ln_1, float *mean) {
  // KERNELS: #pragma omp parallel for schedule(static)
  // KERNELS: for (int i = 0; i < 64; ++i) {
  // KERNELS: in_lanes<int>(0, 192, [&](int j, int lane) ALWAYS_INLINED {
  // KERNELS: sums[lane] += x_value;
  // KERNELS: const float sum = sum_lanes(sums);
  // KERNELS: #pragma omp simd
  kernel.function @ln_1 row dims [64, 192] reduced 1 outputs 2
      accesses [#whole, #per_column, #whole, #per_row] sources ["h.0.ln_1"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %w: !kernel.buffer<f32> loc("ln.weight"),
       %y: !kernel.buffer<f32> loc("h.0.ln_1"), %m: !kernel.buffer<f32> loc("mean")):
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

  // The mask compares in int and reads only where it holds.
  // KERNELS: void masked(
  // KERNELS: (k <= j)
  // KERNELS: ? x[
  kernel.function @masked pointwise dims [4, 64, 192] reduced 0 outputs 1
      accesses [#kernel.access<[0, 192, 1], -3>, #kernel.access<[12288, 192, 1], 0>] sources ["mask"] {
  ^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
    kernel.map {
      %i = kernel.index 1
      %j = kernel.index 2
      %inside = arith.cmpi sle, %j, %i : i64
      %three = arith.constant 3 : i64
      %later = arith.cmpi sge, %j, %three : i64
      %both = arith.andi %inside, %later : i1
      %0 = kernel.load %x if %both : !kernel.buffer<f32> -> f32
      %1 = math.tanh %0 : f32
      %2 = math.exp %1 : f32
      kernel.store %2, %y : f32, !kernel.buffer<f32>
    }
  }

  // KERNELS: // reads ids i64 [64], table f32 [*, 192]
  // KERNELS: void rows_of(
  // KERNELS: const int64_t ids_value = ids[i];
  // KERNELS: table[ids_value * 192 + j]
  kernel.function @rows_of pointwise dims [64, 192] reduced 0 outputs 1
      accesses [#per_row, #per_column, #whole] sources ["wte"] {
  ^bb0(%ids: !kernel.buffer<i64> loc("ids"), %table: !kernel.buffer<f32> loc("table"), %y: !kernel.buffer<f32>):
    kernel.map {
      %i = kernel.load %ids : !kernel.buffer<i64> -> i64
      %0 = kernel.load %table at %i : i64 {index_stride = 192 : i64} : !kernel.buffer<f32> -> f32
      kernel.store %0, %y : f32, !kernel.buffer<f32>
    }
  }

  // KERNELS: void column_sum(
  // KERNELS: for (int first = 0; first < 192; first += block) {
  // KERNELS: #pragma omp simd
  // KERNELS: sums[lane] += ln_1_value;
  kernel.function @column_sum column dims [64, 192] reduced 1 outputs 1
      accesses [#whole, #per_column] sources ["gradient of ln.weight"] {
  ^bb0(%x: !kernel.buffer<f32> loc("dy"), %y: !kernel.buffer<f32>):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // KERNELS: void total(
  // KERNELS: float sum_of_block[
  // KERNELS: for (const float of_block : sum_of_block) {
  kernel.function @total full dims [12288] reduced 1 outputs 1
      accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>] sources ["loss"] {
  ^bb0(%x: !kernel.buffer<f32> loc("x"), %y: !kernel.buffer<f32> loc("loss")):
    %s = kernel.reduce [#kernel<reduction add>] {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.mulf %0, %0 : f32
      kernel.yield %1 : f32
    } : f32
    kernel.store %s, %y : f32, !kernel.buffer<f32>
  }

  // MEMORY: //   activations: 1000000 bytes
  // MEMORY: namespace shared {
  // MEMORY: constexpr in_parameters<float> ln_weight = 0; // [192]
  // MEMORY: namespace forward_backward {
  // MEMORY-NEXT: using namespace shared;
  // MEMORY: constexpr in_activations<float> ln_1 = 65536; // [64, 192], steps 0 to 2
  // STEP: constexpr matmul_shape product_64x64x192 = {
  // STEP: static void forward_backward_1(const entry_memory &m) {
  // STEP-NEXT: namespace at = memory::forward_backward;
  // STEP-NEXT: // ln_1
  // STEP-NEXT: m.step(0);
  // STEP-NEXT: kernels::ln_1(m[at::x], m[at::ln_weight],
  // STEP: // gradient of ln.weight
  // STEP-NEXT: m.step(2);
  // STEP-NEXT: kernels::column_sum(m[at::ln_1], m[at::d_ln_weight]);
  // TRAINER: constexpr parameter_place parameters[] = {
  // TRAINER-NEXT: {{[{][{]}}"ln.weight", data_type::f32, 1, {192}, arena_kind::parameters, 0}, parameter_role::trained, false},
  func.func @forward_backward(
      %x: tensor<64x192xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>},
      %w: tensor<192xf32> {train.role = #train.parameter<"ln.weight">, kernel.place = #kernel.place<parameters, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 49152>},
          tensor<192xf32> {train.role = #train.gradient<"ln.weight">, kernel.place = #kernel.place<gradients, 0>}) {
    %0:2 = kernel.launch @ln_1(%x, %w) {places = [#kernel.place<activations, 65536>, #kernel.place<activations, 131072>]}
        : (tensor<64x192xf32>, tensor<192xf32>) -> (tensor<64x192xf32>, tensor<64xf32>) loc("ln_1")
    %1 = kernel.launch @total(%0#0) {places = [#kernel.place<activations, 49152>]}
        : (tensor<64x192xf32>) -> tensor<f32> loc("loss")
    %2 = kernel.launch @column_sum(%0#0) {places = [#kernel.place<gradients, 0>]}
        : (tensor<64x192xf32>) -> tensor<192xf32> loc("gradient"("ln.weight"))
    %3 = kernel.matmul %x, %x {m = 64 : i64, n = 64 : i64, k = 192 : i64, batch = array<i64: 1>,
        matrix_a = #kernel.matrix<0, [0], 192, 1>, matrix_b = #kernel.matrix<0, [0], 1, 192>,
        matrix_c = #kernel.matrix<0, [0], 64, 1>, places = [#kernel.place<activations, 200000>]}
        : tensor<64x192xf32>, tensor<64x192xf32> -> tensor<64x64xf32> loc("scores")
    %4 = kernel.launch @masked(%x) {places = [#kernel.place<activations, 262144>]}
        : (tensor<64x192xf32>) -> tensor<4x64x192xf32> loc("mask")
    return %1, %2 : tensor<f32>, tensor<192xf32>
  }
  func.func @evaluate(
      %x: tensor<64x192xf32> {train.role = #train.input<"x">, kernel.place = #kernel.place<activations, 0>},
      %w: tensor<192xf32> {train.role = #train.parameter<"ln.weight">, kernel.place = #kernel.place<parameters, 0>})
      -> (tensor<f32> {train.role = #train.loss, kernel.place = #kernel.place<activations, 49152>},
          tensor<64x192xf32> {train.role = #train.output<"y">, kernel.place = #kernel.place<activations, 65536>}) {
    %0:2 = kernel.launch @ln_1(%x, %w) {places = [#kernel.place<activations, 65536>, #kernel.place<activations, 131072>]}
        : (tensor<64x192xf32>, tensor<192xf32>) -> (tensor<64x192xf32>, tensor<64xf32>) loc("ln_1")
    %1 = kernel.launch @total(%0#0) {places = [#kernel.place<activations, 49152>]}
        : (tensor<64x192xf32>) -> tensor<f32> loc("loss")
    return %1, %0#0 : tensor<f32>, tensor<64x192xf32>
  }
}
