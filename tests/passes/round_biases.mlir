// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -round-biases | %FileCheck %s
// RUN: %trainc-opt %s -round-biases -form-products -fuse-epilogues | %FileCheck %s --check-prefix=FUSED

// What is added to a rounded product is rounded; a residual, a bias of a product in f32 and what is no parameter are not.
// CHECK-LABEL: func.func @forward_backward
// CHECK: %[[B:.*]] = nn.cast %arg1 : (tensor<16xf32>) -> tensor<16xbf16>
// CHECK: %[[WIDE:.*]] = nn.cast %[[B]] : (tensor<16xbf16>) -> tensor<16xf32>
// CHECK: %[[LINES:.*]] = nn.broadcast %[[WIDE]]
// CHECK: nn.add %{{.*}}, %[[LINES]]
// CHECK-NOT: nn.cast %arg3

// The product adds it in 16 bits, applies GELU and keeps what that is applied to; the sum of the bias's gradient comes with
// a product whose result is in f32.
// FUSED-LABEL: func.func @forward_backward
// FUSED: %[[B:.*]] = nn.cast %arg1 : (tensor<16xf32>) -> tensor<16xbf16>
// FUSED: %[[Y:.*]], %[[X:.*]] = kernel.matmul %arg0, %arg2 bias %[[B]] {{.*}}epilogue = #kernel<epilogue gelu>{{.*}} bias tensor<16xbf16> -> tensor<8x16xbf16> linear tensor<8x16xbf16>
// FUSED: %[[DW:.*]], %[[DB:.*]] = kernel.matmul %arg0, %[[Y]] {{.*}}summed = #kernel<summed b>{{.*}} -> tensor<8x16xf32> sum tensor<16xf32>
// FUSED-NOT: nn.reduce_sum
// FUSED: return {{.*}}, %[[X]], %[[DW]], %[[DB]]
func.func @forward_backward(%x: tensor<8x8xbf16>, %b: tensor<16xf32> {train.role = #train.parameter<"b">},
                            %w: tensor<8x16xbf16>, %c: tensor<16xf32>, %r: tensor<8x16xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xbf16>, tensor<8x16xf32>, tensor<16xf32>) {
  %0 = nn.matmul %x, %w : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xf32>
  %1 = nn.cast %0 : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  %2 = nn.cast %1 : (tensor<8x16xbf16>) -> tensor<8x16xf32>
  %3 = nn.broadcast %b {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %4 = nn.add %2, %3 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %5 = nn.gelu_tanh %4 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %6 = nn.cast %5 : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  %7 = nn.matmul %x, %6 {transpose_a} : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xf32>
  %8 = nn.reduce_sum %5 {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  %9 = nn.broadcast %c {dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %10 = nn.add %r, %9 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %11 = nn.add %7, %r : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %12 = nn.cast %4 : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  return %10, %11, %12, %7, %8 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xbf16>, tensor<8x16xf32>, tensor<16xf32>
}
