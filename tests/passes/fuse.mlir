// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section MLP %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=MLP
// RUN: %section NORM %s | %trainc-opt -decompose -form-products -fuse | %FileCheck %s --check-prefix=NORM
// RUN: %section ENTROPY %s | %trainc-opt -differentiate -decompose -form-products -fuse | %FileCheck %s --check-prefix=ENTROPY
// RUN: %section COLUMNS %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=COLUMNS
// RUN: %section RECOMPUTE %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=RECOMPUTE
// RUN: %section STORED %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=STORED
// RUN: %section LABELS %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=LABELS
// RUN: %section SERVED %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=SERVED
// RUN: %section DISTANT %s | awk '/^ *MANY/ { for (i = 0; i < 500; ++i) printf "  %%%%c%%d = nn.matmul %%%%c%%d, %%%%w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n", i + 1, i; next } { print }' | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=DISTANT
// RUN: %section CUTS %s | not %trainc-opt -form-products -fuse -fuse 2>&1 | %FileCheck %s --check-prefix=TWICE
// RUN: %section CUTS %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=CUTS
// RUN: %section CUTS %s | %trainc-opt -form-products -fuse -lower-to-kernels
// RUN: %section RESULTS %s | %trainc-opt -form-products -fuse | %FileCheck %s --check-prefix=RESULTS

// A bias and an activation are one kernel; a transposed product is written as its reader wants it.
// MLP
// MLP-LABEL: func.func @mlp
// MLP: %[[PRODUCT:.*]] = kernel.matmul %arg0, %arg2
// MLP-SAME: matrix_c = #kernel.matrix<0, [0], 1, 16>
// MLP-SAME: -> tensor<8x16xf32>
// MLP: %[[Y:.*]] = kernel.group pointwise {
// MLP-NEXT: nn.broadcast %arg1
// MLP-NEXT: nn.add %[[PRODUCT]]
// MLP-NEXT: nn.gelu
// MLP-NEXT: kernel.yield
// MLP: return %[[Y]]
func.func @mlp(%weight: tensor<16x4xf32>, %bias: tensor<16xf32>, %x: tensor<8x4xf32>) -> tensor<8x16xf32> {
  %0 = nn.matmul %weight, %x {transpose_b} : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %2 = nn.broadcast %bias {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %3 = nn.add %1, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = nn.gelu %3 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}

// -----

// Residual sum, statistics, scale and shift: one row kernel, which stores the sum as well.
// NORM
// NORM-LABEL: func.func @norm
// NORM: %[[GROUP:.*]]:2 = kernel.group row {
// NORM: nn.reduce_sum
// NORM: nn.reduce_sum
// NORM: kernel.yield
// NORM-NOT: kernel.group
// NORM: return %[[GROUP]]#0, %[[GROUP]]#1
func.func @norm(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %scale: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = nn.add %x, %y : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = nn.layer_norm %0 {epsilon = 1.0e-5 : f64} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = nn.broadcast %scale {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %3 = nn.mul %1, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0, %3 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// The rows of the loss and of its gradient are one kernel; the count of labels comes first.
// ENTROPY
// ENTROPY-LABEL: func.func @forward_backward
// ENTROPY: %[[COUNT:.*]] = kernel.group full {
// ENTROPY: kernel.group row {
// ENTROPY: nn.reduce_max
// ENTROPY: %[[COUNT]]
// ENTROPY: kernel.yield {{.*}} : tensor<8xf32>, tensor<8xf32>, tensor<8x32xf32>
// ENTROPY: kernel.group full {
// ENTROPY-NOT: kernel.group
// ENTROPY: return
func.func @model(%x: tensor<8x32xf32> {train.role = #train.parameter<"x">},
                 %labels: tensor<8xi64> {train.role = #train.label<"labels">})
    -> (tensor<f32> {train.role = #train.loss}) {
  %0 = nn.cross_entropy %x, %labels {ignore_index = -100 : i64} : (tensor<8x32xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Gradients of scale and shift share their loop; the product of the second is not stored.
// COLUMNS
// COLUMNS-LABEL: func.func @columns
// COLUMNS: %[[GROUP:.*]]:2 = kernel.group column {
// COLUMNS: nn.reduce_sum %arg0
// COLUMNS: nn.mul
// COLUMNS: nn.reduce_sum
// COLUMNS-NOT: kernel.group
// COLUMNS: return %[[GROUP]]#0, %[[GROUP]]#1
func.func @columns(%dy: tensor<8x16xf32>, %x: tensor<8x16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = nn.reduce_sum %dy {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  %1 = nn.mul %dy, %x : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  return %0, %2 : tensor<16xf32>, tensor<16xf32>
}

// -----

// Product plus bias is computed again where the gradient of the activation wants it.
// RECOMPUTE
// RECOMPUTE-LABEL: func.func @recompute
// RECOMPUTE: %[[PRODUCT:.*]] = kernel.matmul %arg0, %arg1
// RECOMPUTE: %[[Y:.*]] = kernel.group pointwise {
// RECOMPUTE: nn.add %[[PRODUCT]]
// RECOMPUTE: nn.relu
// RECOMPUTE: }
// RECOMPUTE: %[[DY:.*]] = kernel.matmul %[[Y]], %arg3
// RECOMPUTE: kernel.group pointwise {
// RECOMPUTE: nn.add %[[PRODUCT]]
// RECOMPUTE: nn.mul {{.*}}%[[DY]]
func.func @recompute(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %bias: tensor<16xf32>, %v: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %1 = nn.broadcast %bias {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %2 = nn.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = nn.relu %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = nn.matmul %3, %v : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %5 = nn.mul %4, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}

// -----

// The same with a sum of two products, which would both be read again and held: stored once.
// STORED
// STORED-LABEL: func.func @stored
// STORED: %[[FIRST:.*]]:2 = kernel.group pointwise {
// STORED: nn.add
// STORED: nn.relu
// STORED: kernel.yield
// STORED: kernel.matmul
// STORED: kernel.group pointwise {
// STORED-NOT: nn.add
// STORED: nn.mul
func.func @stored(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %u: tensor<4x16xf32>, %v: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %1 = nn.matmul %x, %u : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %h = nn.tanh %1 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = nn.add %0, %h : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = nn.relu %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = nn.matmul %3, %v : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %5 = nn.mul %4, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}

// -----

// By its size alone the mask (a byte) would be stored rather than the label (eight bytes) read again; but the
// second kernel reads the label anyway.
// LABELS
// LABELS-LABEL: func.func @labels
// LABELS: kernel.group full {
// LABELS: nn.equal
// LABELS: kernel.yield {{.*}} : tensor<f32>
// LABELS: kernel.group pointwise {
// LABELS: nn.equal
// LABELS: kernel.yield
func.func @labels(%labels: tensor<64xi64>, %x: tensor<64xf32>) -> (tensor<f32>, tensor<64xf32>) {
  %none = nn.constant dense<-100> : tensor<64xi64>
  %zero = nn.constant dense<0.0> : tensor<64xf32>
  %ignored = nn.equal %labels, %none : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi1>
  %number = nn.cast %labels : (tensor<64xi64>) -> tensor<64xf32>
  %mask = nn.cast %ignored : (tensor<64xi1>) -> tensor<64xf32>
  %count = nn.reduce_sum %mask {dimensions = array<i64: 0>} : (tensor<64xf32>) -> tensor<f32>
  %share = nn.broadcast %count {dimensions = array<i64>} : (tensor<f32>) -> tensor<64xf32>
  %0 = nn.mul %x, %number : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = nn.select %ignored, %zero, %0 : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = nn.div %1, %share : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %count, %2 : tensor<f32>, tensor<64xf32>
}

// -----

// A gradient of which only two sums over the batch are wanted: computed in the loop of the sums, stored nowhere.
// SERVED
// SERVED-LABEL: func.func @served
// SERVED-NOT: kernel.group
// SERVED: %[[PAIR:.*]]:2 = kernel.group column {
// SERVED: nn.erf
// SERVED: nn.reduce_sum
// SERVED: nn.reduce_sum
// SERVED: kernel.yield {{.*}} : tensor<16xf32>, tensor<16xf32>
// SERVED-NOT: kernel.group
// SERVED: return %[[PAIR]]#0, %[[PAIR]]#1
func.func @served(%dy: tensor<8x16xf32>, %x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = nn.erf %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = nn.exp %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = nn.tanh %1 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = nn.erf %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = nn.mul %3, %dy : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %5 = nn.reduce_sum %4 {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  %6 = nn.mul %4, %y : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %7 = nn.reduce_sum %6 {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  return %5, %7 : tensor<16xf32>, tensor<16xf32>
}

// -----

// Two branches that read the same tensor share a loop, with 500 products between them.
// DISTANT
// DISTANT-LABEL: func.func @distant
// DISTANT: kernel.group row {
// DISTANT: nn.reduce_sum %arg0
// DISTANT: nn.reduce_max %arg0
// DISTANT: kernel.yield
// DISTANT-NOT: kernel.group
// DISTANT: return
func.func @distant(%x: tensor<8x16xf32>, %c0: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<8x8xf32>, tensor<8xf32>) {
  %0 = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  MANY
  %1 = nn.reduce_max %x {dimensions = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  return %0, %c500, %1 : tensor<8xf32>, tensor<8x8xf32>, tensor<8xf32>
}

// -----

// An argument, a reshaped product and a value returned twice: each result is a tensor of its own.
// A reduction that nobody reads disappears.
// RESULTS
// RESULTS-LABEL: func.func @results
// RESULTS: %[[PRODUCT:.*]] = kernel.matmul {{.*}} -> tensor<64xf32>
// RESULTS: %[[COPIES:.*]]:2 = kernel.group pointwise
// RESULTS-NOT: reduce_max
// RESULTS: return %[[COPIES]]#{{[01]}}, %[[PRODUCT]], %[[COPIES]]#{{[01]}}
func.func @results(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<64xf32>, tensor<8x8xf32>) {
  %0 = nn.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.reshape %0 : (tensor<8x8xf32>) -> tensor<64xf32>
  %2 = nn.reduce_max %x {dimensions = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<8xf32>
  return %x, %1, %x : tensor<8x8xf32>, tensor<64xf32>, tensor<8x8xf32>
}

// -----

// Both sum 240 products, one in rows of 2 of what has rows of 5 and 10, one in planes of 12: no cut of
// one iteration space gives both, so each has its own.
// CUTS
// TWICE: fuse expects operations that are in no group; it ran already
// CUTS-LABEL: func.func @cuts
// CUTS: kernel.group full
// CUTS-COUNT-1: nn.reduce_sum
// CUTS: kernel.group full
// CUTS: nn.reduce_sum
// CUTS: return
func.func @cuts(%x: tensor<2x6x2x5xf32>, %y: tensor<2x6x2x5xf32>) -> tensor<f32> {
  %0 = nn.mul %x, %y : (tensor<2x6x2x5xf32>, tensor<2x6x2x5xf32>) -> tensor<2x6x2x5xf32>
  %1 = nn.reshape %0 : (tensor<2x6x2x5xf32>) -> tensor<60x2xf32>
  %2 = nn.reduce_sum %1 {dimensions = array<i64: 0, 1>} : (tensor<60x2xf32>) -> tensor<f32>
  %3 = nn.atan %0 : (tensor<2x6x2x5xf32>) -> tensor<2x6x2x5xf32>
  %4 = nn.transpose %3 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x6x2x5xf32>) -> tensor<2x5x6x2xf32>
  %5 = nn.reduce_sum %4 {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x5x6x2xf32>) -> tensor<f32>
  %6 = nn.add %2, %5 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %6 : tensor<f32>
}
