// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt --store-frozen %s | %FileCheck %s
// RUN: %trainc-opt --store-frozen --fuse --lower-to-kernels --order-operations --plan-memory %s | %FileCheck %s --check-prefix=PLACES

// A product in the stored type reads the weight as it is; every other reader has a cast of its own, through views too.
// What the module does not name stays in the layout.
// CHECK: train.layout = #train.layout<runs = [32, 0, 0, 32], parameters = [#train.placed<"w", decayed at 0, 16 elements>, #train.placed<"b", frozen at 32, 4 elements>]>
// CHECK: func.func @forward_backward(
// CHECK-SAME: %arg0: tensor<4x4xf32>
// CHECK-SAME: %arg1: tensor<4x4xbf16>
// CHECK-SAME: %arg2: tensor<4x4xf32>
// CHECK-DAG: nn.exp %arg1
// CHECK-DAG: %[[A:.*]] = nn.cast %arg1 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
// CHECK-DAG: nn.sin %[[A]]
// CHECK-DAG: %[[B:.*]] = nn.cast %arg1 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
// CHECK-DAG: %[[C:.*]] = nn.reshape %[[B]]
// CHECK-DAG: nn.cos %[[C]]
// CHECK-DAG: %[[D:.*]] = nn.cast %arg2 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// CHECK-DAG: nn.sqrt %[[D]]
// CHECK-DAG: %[[E:.*]] = nn.cast %arg2 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// CHECK-DAG: nn.tanh %[[E]]
// CHECK: return

// PLACES: kernel.frozen_bytes = 128
// PLACES: kernel.place<frozen, 0>, train.role = #train.parameter<"narrow", run = frozen>
// PLACES: kernel.place<frozen, 64>, train.role = #train.parameter<"wide", run = frozen>
// PLACES: kernel.place<parameters, 128>, train.role = #train.parameter<"b", run = frozen>
module attributes {
  train.frozen_storage = {narrow = bf16, wide = f32},
  train.layout = #train.layout<runs = [32, 0, 0, 96], parameters = [
    #train.placed<"w", decayed at 0, 16 elements>, #train.placed<"narrow", frozen at 32, 16 elements>,
    #train.placed<"wide", frozen at 64, 16 elements>, #train.placed<"b", frozen at 96, 4 elements>]>} {
  func.func @forward_backward(
      %w: tensor<4x4xf32> {train.role = #train.parameter<"w", run = decayed>},
      %narrow: tensor<4x4xf32> {train.role = #train.parameter<"narrow", run = frozen>},
      %wide: tensor<4x4xf32> {train.role = #train.parameter<"wide", run = frozen>},
      %b: tensor<4xf32> {train.role = #train.parameter<"b", run = frozen>})
      -> (tensor<4x4xbf16>, tensor<4x4xf32>, tensor<16xf32>, tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4xf32>, tensor<4x4xf32>) {
    %0 = nn.cast %narrow : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %1 = nn.exp %0 : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
    %2 = nn.sin %narrow : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = nn.reshape %narrow : (tensor<4x4xf32>) -> tensor<16xf32>
    %4 = nn.cos %3 : (tensor<16xf32>) -> tensor<16xf32>
    %5 = nn.cast %wide : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %6 = nn.sqrt %5 : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
    %7 = nn.tanh %5 : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
    %8 = nn.exp %b : (tensor<4xf32>) -> tensor<4xf32>
    %9 = nn.exp %w : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1, %2, %4, %6, %7, %8, %9 : tensor<4x4xbf16>, tensor<4x4xf32>, tensor<16xf32>, tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4xf32>, tensor<4x4xf32>
  }
}
