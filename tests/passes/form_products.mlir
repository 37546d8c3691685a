// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section ATTENTION %s | %trainc-opt -form-products | %FileCheck %s --check-prefix=ATTENTION
// RUN: %section SUMS %s | %trainc-opt -form-products | %FileCheck %s --check-prefix=SUMS
// RUN: %section KEPT %s | %trainc-opt -form-products | %FileCheck %s --check-prefix=KEPT
// RUN: %section ROWS %s | %trainc-opt -form-products | %FileCheck %s --check-prefix=ROWS
// RUN: %section JOINED %s | %trainc-opt -form-products | %FileCheck %s --check-prefix=JOINED
// RUN: %section ROUNDED %s | %trainc-opt -form-products | %FileCheck %s --check-prefix=ROUNDED
// RUN: %trainc-opt %s -split-input-file -form-products -verify-diagnostics -o /dev/null

// Queries, keys and values are read in place, heads are written side by side.
// ATTENTION
// ATTENTION-LABEL: func.func @attention
// ATTENTION: %[[SCORES:.*]] = kernel.matmul %arg0, %arg0
// ATTENTION-SAME: batch = array<i64: 2, 4>
// ATTENTION-SAME: matrix_a = #kernel.matrix<0, [180, 5], 60, 1>
// ATTENTION-SAME: matrix_b = #kernel.matrix<20, [180, 5], 1, 60>
// ATTENTION-SAME: matrix_c = #kernel.matrix<0, [36, 9], 3, 1>
// ATTENTION-NEXT: kernel.matmul %[[SCORES]], %arg0
// ATTENTION-SAME: matrix_b = #kernel.matrix<40, [180, 5], 60, 1>
// ATTENTION-SAME: matrix_c = #kernel.matrix<0, [60, 5], 20, 1>
// ATTENTION-SAME: -> tensor<6x20xf32>
// ATTENTION-NEXT: return
func.func @attention(%qkv: tensor<6x60xf32>) -> tensor<6x20xf32> {
  %q0 = nn.slice %qkv {starts = array<i64: 0, 0>, sizes = array<i64: 6, 20>, strides = array<i64: 1, 1>} : (tensor<6x60xf32>) -> tensor<6x20xf32>
  %k0 = nn.slice %qkv {starts = array<i64: 0, 20>, sizes = array<i64: 6, 20>, strides = array<i64: 1, 1>} : (tensor<6x60xf32>) -> tensor<6x20xf32>
  %v0 = nn.slice %qkv {starts = array<i64: 0, 40>, sizes = array<i64: 6, 20>, strides = array<i64: 1, 1>} : (tensor<6x60xf32>) -> tensor<6x20xf32>
  %q1 = nn.reshape %q0 : (tensor<6x20xf32>) -> tensor<2x3x4x5xf32>
  %k1 = nn.reshape %k0 : (tensor<6x20xf32>) -> tensor<2x3x4x5xf32>
  %v1 = nn.reshape %v0 : (tensor<6x20xf32>) -> tensor<2x3x4x5xf32>
  %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
  %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
  %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
  %s = nn.matmul %q, %k {transpose_b} : (tensor<2x4x3x5xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x3xf32>
  %o = nn.matmul %s, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %t = nn.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x5xf32>) -> tensor<2x3x4x5xf32>
  %y = nn.reshape %t : (tensor<2x3x4x5xf32>) -> tensor<6x20xf32>
  return %y : tensor<6x20xf32>
}

// -----

// A sum of products is added in place, and so is a scatter into a product.
// SUMS
// SUMS-LABEL: func.func @sums
// SUMS: %[[FIRST:.*]] = kernel.matmul %arg0, %arg1
// SUMS-NEXT: %[[SUM:.*]] = kernel.matmul %arg2, %arg1 init %[[FIRST]]
// SUMS-NEXT: %[[TABLE:.*]] = kernel.call "scatter_add" of "scatter_add" [3, 8, 16](%arg3, %arg4, %[[SUM]])
// SUMS-SAME: flops = 4.800000e+01 : f64, in_place = array<i64: 2>, reads = array<i64: 24, 192, 192>, writes = array<i64: 192>
// SUMS-NEXT: return %[[TABLE]]
func.func @sums(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>, %c: tensor<8x4xf32>, %ids: tensor<3xi64>, %rows: tensor<3x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %1 = nn.matmul %c, %b : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %2 = nn.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = nn.scatter_add %2, %ids, %rows : (tensor<8x16xf32>, tensor<3xi64>, tensor<3x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// A table that is read again is copied before rows are added to it; one of zeros is not read at all.
// KEPT
// KEPT-LABEL: func.func @kept
// KEPT: %[[DOUBLE:.*]] = nn.add %arg0, %arg0
// KEPT: %[[COPY:.*]] = nn.reshape %[[DOUBLE]]
// KEPT-NEXT: %[[OWN:.*]] = kernel.call "scatter_add" of "scatter_add" [2, 4, 3](%arg1, %arg2, %[[COPY]])
// KEPT-NEXT: %[[FRESH:.*]] = kernel.call "scatter_add_from_zero" of "scatter_add" [2, 4, 3](%arg1, %arg2) {flops = 6.000000e+00 : f64, reads = array<i64: 16, 24>, writes = array<i64: 72>}
// KEPT-NEXT: return %[[DOUBLE]], %[[OWN]], %[[FRESH]]
func.func @kept(%x: tensor<4x3xf32>, %ids: tensor<2xi64>, %rows: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = nn.constant dense<0.0> : tensor<4x3xf32>
  %0 = nn.add %x, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = nn.scatter_add %0, %ids, %rows : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %2 = nn.scatter_add %zero, %ids, %rows : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %0, %1, %2 : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// A batch whose matrices continue each other is one matrix; a broadcast operand is read as it lies.
// ROWS
// ROWS-LABEL: func.func @rows
// ROWS-NEXT: kernel.matmul %arg0, %arg1
// ROWS-SAME: batch = array<i64: 1>
// ROWS-SAME: m = 24
// ROWS-NEXT: return
func.func @rows(%x: tensor<4x6x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x6x16xf32> {
  %0 = nn.broadcast %w {dimensions = array<i64: 1, 2>} : (tensor<8x16xf32>) -> tensor<4x8x16xf32>
  %1 = nn.matmul %x, %0 : (tensor<4x6x8xf32>, tensor<4x8x16xf32>) -> tensor<4x6x16xf32>
  return %1 : tensor<4x6x16xf32>
}

// -----

func.func @numbers(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects numbers or lists of i64 or f64, found "four"}}
  kernel.call "f" of "some" ["four"] (%x) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @in_place(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{takes input 1, which is not there or already taken}}
  %0 = kernel.call "f" of "some" [] (%x) {in_place = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @other_size(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{writes a 'tensor<8xf32>' in place of a 'tensor<4xf32>'}}
  %0 = kernel.call "f" of "some" [] (%x) {in_place = array<i64: 0>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @reads(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expects bytes in `reads` for each input and in `writes` for each result}}
  %0 = kernel.call "f" of "some" [] (%x) {reads = array<i64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What a split gave has its gradients side by side: attention writes the three parts into one tensor, whose rows have 12
// numbers.
// JOINED
// JOINED-LABEL: func.func @joined
// JOINED: %[[D:.*]] = kernel.call "attention_gradient" of "attention_gradient" [array<i64: 5, 5, 4, 4, 1, 5, 0>, array<i64: 2>, {{.*}}, array<i64: 0, 12, 1, 60>, array<i64: 4, 12, 1, 60>, array<i64: 8, 12, 1, 60>, array<i64>]({{.*}}) {{.*}}result_arguments = array<i64: 0, 0, 0>{{.*}} -> tensor<2x5x12xbf16>
// JOINED-NEXT: %[[WIDE:.*]] = nn.cast %[[D]] : (tensor<2x5x12xbf16>) -> tensor<2x5x12xf32>
// JOINED-NEXT: return %[[WIDE]]
func.func @joined(%q: tensor<2x5x4xbf16>, %k: tensor<2x5x4xbf16>, %v: tensor<2x5x4xbf16>, %y: tensor<2x5x4xbf16>, %l: tensor<2x5xf32>, %dy: tensor<2x5x4xbf16>) -> tensor<2x5x12xf32> {
  %dq, %dk, %dv = nn.attention_gradient %q, %k, %v, %y, %l, %dy {scale = 1.0 : f64} : (tensor<2x5x4xbf16>, tensor<2x5x4xbf16>, tensor<2x5x4xbf16>, tensor<2x5x4xbf16>, tensor<2x5xf32>, tensor<2x5x4xbf16>) -> (tensor<2x5x4xbf16>, tensor<2x5x4xbf16>, tensor<2x5x4xbf16>)
  %0 = nn.pad %dv {high = array<i64: 0, 0, 0>, interior = array<i64: 0, 0, 0>, low = array<i64: 0, 0, 8>} : (tensor<2x5x4xbf16>) -> tensor<2x5x12xbf16>
  %1 = nn.cast %0 : (tensor<2x5x12xbf16>) -> tensor<2x5x12xf32>
  %2 = nn.pad %dk {high = array<i64: 0, 0, 4>, interior = array<i64: 0, 0, 0>, low = array<i64: 0, 0, 4>} : (tensor<2x5x4xbf16>) -> tensor<2x5x12xbf16>
  %3 = nn.cast %2 : (tensor<2x5x12xbf16>) -> tensor<2x5x12xf32>
  %4 = nn.pad %dq {high = array<i64: 0, 0, 8>, interior = array<i64: 0, 0, 0>, low = array<i64: 0, 0, 0>} : (tensor<2x5x4xbf16>) -> tensor<2x5x12xbf16>
  %5 = nn.cast %4 : (tensor<2x5x12xbf16>) -> tensor<2x5x12xf32>
  %6 = nn.add %1, %3 : (tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
  %7 = nn.add %6, %5 : (tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
  return %7 : tensor<2x5x12xf32>
}

// -----

// A product is rounded as it is written also where its reader sees it in another order, which attention takes as strides.
// ROUNDED
// ROUNDED-LABEL: func.func @rounded
// ROUNDED: %[[P:.*]] = kernel.matmul {{.*}} -> tensor<2x5x3x4xbf16>
// ROUNDED-NOT: nn.cast
// ROUNDED: kernel.call "attention"{{.*}}(%[[P]], %[[P]], %[[P]])
func.func @rounded(%x: tensor<10x8xbf16>, %w: tensor<8x12xbf16>) -> (tensor<2x3x5x4xbf16>, tensor<2x3x5xf32>) {
  %0 = nn.matmul %x, %w : (tensor<10x8xbf16>, tensor<8x12xbf16>) -> tensor<10x12xf32>
  %1 = nn.cast %0 : (tensor<10x12xf32>) -> tensor<10x12xbf16>
  %2 = nn.reshape %1 : (tensor<10x12xbf16>) -> tensor<2x5x3x4xbf16>
  %3 = nn.transpose %2 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x3x4xbf16>) -> tensor<2x3x5x4xbf16>
  %4, %5 = nn.attention %3, %3, %3 {scale = 1.0 : f64} : (tensor<2x3x5x4xbf16>, tensor<2x3x5x4xbf16>, tensor<2x3x5x4xbf16>) -> (tensor<2x3x5x4xbf16>, tensor<2x3x5xf32>)
  return %4, %5 : tensor<2x3x5x4xbf16>, tensor<2x3x5xf32>
}
