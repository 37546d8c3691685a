// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section MLP %s | %trainc-opt -form-products -fuse-epilogues | %FileCheck %s --check-prefix=MLP
// RUN: %section TRAIN %s | %trainc-opt -derive-evaluate -differentiate -decompose -form-products -fuse-epilogues | %FileCheck %s --check-prefix=TRAIN
// RUN: %section TRAIN %s | %trainc-opt -derive-evaluate -differentiate -decompose -form-products -fuse-epilogues -fuse -lower-to-kernels -order-operations -plan-memory | %FileCheck %s --check-prefix=PLACES
// RUN: %section COLUMNS %s | %trainc-opt -form-products -fuse-epilogues | %FileCheck %s --check-prefix=COLUMNS
// RUN: %section SHAPES %s | %trainc-opt -form-products -fuse-epilogues | %FileCheck %s --check-prefix=SHAPES
// RUN: %section UNFIT %s | %trainc-opt -form-products -fuse-epilogues | %FileCheck %s --check-prefix=UNFIT
// RUN: %section USED %s | %trainc-opt -form-products -fuse-epilogues | %FileCheck %s --check-prefix=USED
// RUN: %section SUMS %s | %trainc-opt -form-products -fuse-epilogues | %FileCheck %s --check-prefix=SUMS
// RUN: %trainc-opt %s -split-input-file -form-products -fuse-epilogues -verify-diagnostics -o /dev/null

// Forward alone, what GELU is applied to is not kept. The residual stays outside.
// MLP
// MLP-LABEL: func.func @mlp
// MLP: %[[Y:.*]] = kernel.matmul %arg0, %arg1 bias %arg2
// MLP-SAME: epilogue = #kernel<epilogue gelu>
// MLP-SAME: bias tensor<16xf32> -> tensor<8x16xf32>{{$}}
// MLP: %[[Z:.*]] = kernel.matmul %[[Y]], %arg3 bias %arg4
// MLP-NOT: epilogue
// MLP-SAME: bias tensor<4xf32> -> tensor<8x4xf32>{{$}}
// MLP-NEXT: %[[SUM:.*]] = nn.add %[[Z]], %arg0
// MLP-NEXT: return %[[SUM]]
func.func @mlp(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>, %v: tensor<16x4xf32>, %c: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %1 = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %2 = nn.add %1, %0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = nn.gelu_tanh %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = nn.matmul %3, %v : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %5 = nn.broadcast %c {dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4xf32>
  %6 = nn.add %4, %5 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = nn.add %6, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %7 : tensor<8x4xf32>
}

// -----

// The gradient: of GELU with its bias's, of the other bias with its weight's. Nothing of
// the derivative's expression is left. Through reshapes between layers and activations.
// TRAIN
// TRAIN-LABEL: func.func @forward_backward
// TRAIN: %[[Y:.*]], %[[X:.*]] = kernel.matmul %arg4, %arg0 bias %arg1
// TRAIN-SAME: epilogue = #kernel<epilogue gelu>
// TRAIN-SAME: result_names = ["mlp.act", "mlp.fc"]
// TRAIN-SAME: -> tensor<6x16xf32> linear tensor<6x16xf32>
// TRAIN: %[[OUT:.*]] = kernel.matmul %[[Y]], %arg2 bias %arg3
// TRAIN-NOT: nn.tanh
// TRAIN-DAG: %[[DV:.*]], %[[DC:.*]] = kernel.matmul {{.*}}summed = #kernel<summed b>{{.*}} -> tensor<16x8xf32> sum tensor<8xf32>
// TRAIN-DAG: %[[DX:.*]], %[[DB:.*]] = kernel.matmul {{.*}}, %arg2 linear %[[X]] {{.*}}epilogue = #kernel<epilogue gelu_gradient>{{.*}}summed = #kernel<summed result>{{.*}} sum tensor<16xf32>
// TRAIN: %[[DW:.*]] = kernel.matmul %arg4, %[[DX]]
// TRAIN-NOT: nn.reduce_sum {{.*}} -> tensor<16xf32>
// TRAIN: return {{.*}}, %[[DW]], %[[DB]], %[[DV]], %[[DC]]
// TRAIN-LABEL: func.func @evaluate
// TRAIN: kernel.matmul %arg4, %arg0 bias %arg1
// TRAIN-NOT: linear

// All results have places, the sums in the arena of gradients.
// PLACES
// PLACES: kernel.matmul {{.*}}places = [#kernel.place<activations, {{[0-9]+}}>, #kernel.place<activations, {{[0-9]+}}>]
// PLACES: gelu_gradient{{.*}}places = [#kernel.place<activations, {{[0-9]+}}>, #kernel.place<gradients, {{[0-9]+}}>]
module {
  func.func @model(%w: tensor<4x16xf32> {train.role = #train.parameter<"w">}, %b: tensor<16xf32> {train.role = #train.parameter<"b">}, %v: tensor<16x8xf32> {train.role = #train.parameter<"v">}, %c: tensor<8xf32> {train.role = #train.parameter<"c">}, %x: tensor<2x3x4xf32> {train.role = #train.input<"x">}) -> (tensor<f32> {train.role = #train.loss}) {
    %x2 = nn.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    %0 = nn.matmul %x2, %w : (tensor<6x4xf32>, tensor<4x16xf32>) -> tensor<6x16xf32> loc("mlp.fc")
    %1 = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<6x16xf32>
    %2 = nn.add %0, %1 : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x16xf32> loc("mlp.fc")
    %3 = nn.reshape %2 : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
    %4 = nn.gelu_tanh %3 : (tensor<2x3x16xf32>) -> tensor<2x3x16xf32> loc("mlp.act")
    %5 = nn.reshape %4 : (tensor<2x3x16xf32>) -> tensor<6x16xf32>
    %6 = nn.matmul %5, %v : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
    %7 = nn.broadcast %c {dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<6x8xf32>
    %8 = nn.add %6, %7 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %9 = nn.mul %8, %8 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    %10 = nn.reduce_sum %9 {dimensions = array<i64: 0, 1>} : (tensor<6x8xf32>) -> tensor<f32>
    return %10 : tensor<f32>
  }
}

// -----

// A result written column by column has lines along m; so has its bias.
// COLUMNS
// COLUMNS-LABEL: func.func @columns
// COLUMNS: kernel.matmul %arg0, %arg2 bias %arg1
// COLUMNS-SAME: matrix_c = #kernel.matrix<0, [0], 1, 16>
// COLUMNS-SAME: n = 8
func.func @columns(%weight: tensor<16x4xf32>, %bias: tensor<16xf32>, %x: tensor<8x4xf32>) -> tensor<8x16xf32> {
  %0 = nn.matmul %weight, %x {transpose_b} : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %2 = nn.broadcast %bias {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %3 = nn.add %1, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// A bias of more dimensions, as long as a line; not one along another dimension.
// SHAPES
// SHAPES-LABEL: func.func @fits
// SHAPES: kernel.matmul %arg0, %arg1 bias %arg2
// SHAPES-LABEL: func.func @rows
// SHAPES-NOT: bias
// SHAPES: return
func.func @fits(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<1x8xf32>) -> tensor<2x4x8xf32> {
  %x2 = nn.reshape %x : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %0 = nn.matmul %x2, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.reshape %0 : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %2 = nn.broadcast %b {dimensions = array<i64: 1, 2>} : (tensor<1x8xf32>) -> tensor<2x4x8xf32>
  %3 = nn.add %1, %2 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %3 : tensor<2x4x8xf32>
}
func.func @rows(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = nn.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.broadcast %b {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %2 = nn.add %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// The exact GELU, a length that is not a multiple of 8: the bias alone. f64, a batch: nothing.
// UNFIT
// UNFIT-LABEL: func.func @exact
// UNFIT: kernel.matmul %arg0, %arg1 bias %arg2
// UNFIT: nn.gelu
// UNFIT-LABEL: func.func @odd
// UNFIT: kernel.matmul %arg0, %arg1 bias %arg2
// UNFIT: nn.gelu_tanh
// UNFIT-LABEL: func.func @double
// UNFIT-NOT: bias
// UNFIT: nn.add
// UNFIT-LABEL: func.func @batch
// UNFIT-NOT: bias
// UNFIT: nn.add
func.func @exact(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %1 = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %2 = nn.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = nn.gelu %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}
func.func @odd(%x: tensor<8x4xf32>, %w: tensor<4x15xf32>, %b: tensor<15xf32>) -> tensor<8x15xf32> {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x15xf32>) -> tensor<8x15xf32>
  %1 = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<15xf32>) -> tensor<8x15xf32>
  %2 = nn.add %0, %1 : (tensor<8x15xf32>, tensor<8x15xf32>) -> tensor<8x15xf32>
  %3 = nn.gelu_tanh %2 : (tensor<8x15xf32>) -> tensor<8x15xf32>
  return %3 : tensor<8x15xf32>
}
func.func @double(%x: tensor<8x4xf64>, %w: tensor<4x16xf64>, %b: tensor<16xf64>) -> tensor<8x16xf64> {
  %0 = nn.matmul %x, %w : (tensor<8x4xf64>, tensor<4x16xf64>) -> tensor<8x16xf64>
  %1 = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<16xf64>) -> tensor<8x16xf64>
  %2 = nn.add %0, %1 : (tensor<8x16xf64>, tensor<8x16xf64>) -> tensor<8x16xf64>
  return %2 : tensor<8x16xf64>
}
func.func @batch(%x: tensor<2x8x4xf32>, %w: tensor<2x4x16xf32>, %b: tensor<16xf32>) -> tensor<2x8x16xf32> {
  %0 = nn.matmul %x, %w : (tensor<2x8x4xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  %1 = nn.broadcast %b {dimensions = array<i64: 2>} : (tensor<16xf32>) -> tensor<2x8x16xf32>
  %2 = nn.add %0, %1 : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

// -----

// A product that others read as it is keeps its own value; so does one times something
// that only looks like GELU's derivative.
// USED
// USED-LABEL: func.func @twice
// USED: kernel.matmul %arg0, %arg1 {
// USED: nn.add
// USED-LABEL: func.func @other_factor
// USED-NOT: linear
// USED: nn.mul
func.func @twice(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %1 = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %2 = nn.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0, %2 : tensor<8x16xf32>, tensor<8x16xf32>
}
func.func @other_factor(%x: tensor<8x16xf32>, %dy: tensor<8x4xf32>, %w: tensor<4x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = nn.gelu_tanh %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = nn.tanh %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = nn.matmul %dy, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %3 = nn.mul %2, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0, %3 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// A weight that is stored transposed has the gradient of its result on the left. A sum
// that is read before the product can be there stays a kernel's.
// SUMS
// SUMS-LABEL: func.func @left
// SUMS: %[[W:.*]], %[[S:.*]] = kernel.matmul %arg0, %arg1 {{.*}}summed = #kernel<summed a>
// SUMS: return %[[W]], %[[S]]
// SUMS-LABEL: func.func @early
// SUMS: nn.reduce_sum
// SUMS-NOT: summed
func.func @left(%dy: tensor<8x16xf32>, %x: tensor<8x4xf32>) -> (tensor<16x4xf32>, tensor<16xf32>) {
  %0 = nn.matmul %dy, %x {transpose_a} : (tensor<8x16xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %1 = nn.reduce_sum %dy {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  return %0, %1 : tensor<16x4xf32>, tensor<16xf32>
}
func.func @early(%dy: tensor<8x16xf32>, %x: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.reduce_sum %dy {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  %1 = nn.broadcast %0 {dimensions = array<i64: 0>} : (tensor<16xf32>) -> tensor<16x8xf32>
  %2 = nn.mul %1, %x : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %3 = nn.matmul %dy, %2 {transpose_a, transpose_b} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %4 = nn.matmul %dy, %3 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %5 = nn.matmul %4, %2 : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

// -----

// What no library does.
func.func @impossible(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>, %v: tensor<16xf32>) -> tensor<8x16xf32> {
  // expected-error@+1 {{expects a bias of 8 elements}}
  %0 = kernel.matmul %a, %b bias %v {batch = array<i64: 1>, k = 4, m = 8, n = 16, matrix_a = #kernel.matrix<0, [0], 4, 1>, matrix_b = #kernel.matrix<0, [0], 16, 1>, matrix_c = #kernel.matrix<0, [0], 1, 8>} : tensor<8x4xf32>, tensor<4x16xf32> bias tensor<16xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

func.func @no_epilogue(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>) -> tensor<8x16xf32> {
  // expected-error@+1 {{has an operand or result of an epilogue, but no epilogue}}
  %0, %1 = kernel.matmul %a, %b {batch = array<i64: 1>, k = 4, m = 8, n = 16, matrix_a = #kernel.matrix<0, [0], 4, 1>, matrix_b = #kernel.matrix<0, [0], 16, 1>, matrix_c = #kernel.matrix<0, [0], 16, 1>} : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32> linear tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
