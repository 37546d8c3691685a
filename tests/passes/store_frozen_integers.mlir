// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt --store-frozen %s | %FileCheck %s
// RUN: %trainc-opt --store-frozen --fuse --lower-to-kernels --order-operations --plan-memory %s | %FileCheck %s --check-prefix=PLACES

// Each reader dequantizes for itself, in the type that it reads and through views; of a table only the rows that are
// gathered. Scales are an argument of their own, which two weights may share.
// CHECK: func.func @forward_backward(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x16xui8> {train.role = #train.parameter<"w", run = frozen>}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<4x32xi8> {train.role = #train.parameter<"v", run = frozen>}
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<4x1xf16> {train.role = #train.parameter<"s", run = frozen>}
// CHECK-SAME: %[[Z:[a-z0-9]+]]: tensor<4xi8> {train.role = #train.parameter<"z", run = frozen>}
// CHECK-DAG: %[[A:.*]] = kernel.call "dequantize" of "dequantize" [array<i64: 4, 0, 8, 4, 32, 1, 32, 32, 1, 1, 0, 1>](%[[W]], %[[S]]) {{.*}} -> tensor<4x32xbf16>
// CHECK-DAG: nn.exp %[[A]]
// CHECK-DAG: %[[B:.*]] = kernel.call "dequantize" {{.*}}(%[[W]], %[[S]]) {{.*}} -> tensor<4x32xf32>
// CHECK-DAG: nn.sin %[[B]]
// CHECK-DAG: %[[C:.*]] = kernel.call "dequantize" {{.*}}(%[[W]], %[[S]]) {{.*}} -> tensor<4x32xf32>
// CHECK-DAG: %[[D:.*]] = nn.reshape %[[C]]
// CHECK-DAG: nn.cos %[[D]]
// CHECK-DAG: %[[R:.*]] = nn.gather %[[V]], %{{.*}} -> tensor<2x32xi8>
// CHECK-DAG: %[[T:.*]] = nn.gather %[[S]], %{{.*}} -> tensor<2x1xf16>
// CHECK-DAG: %[[Y:.*]] = nn.reshape %[[Z]] : (tensor<4xi8>) -> tensor<4x1xi8>
// CHECK-DAG: %[[U:.*]] = nn.gather %[[Y]], %{{.*}} -> tensor<2x1xi8>
// CHECK-DAG: kernel.call "dequantize" of "dequantize" [array<i64: 8, 1, 0, 2, 32, 1, 32, 32, 1, 1, 0, 1>](%[[R]], %[[T]], %[[U]]) {{.*}} -> tensor<2x32xf32>
// CHECK: return

// PLACES: kernel.frozen_bytes = 320
// PLACES: kernel.place<frozen, 0>, train.role = #train.parameter<"w", run = frozen>
// PLACES: kernel.place<frozen, 64>, train.role = #train.parameter<"v", run = frozen>
// PLACES: kernel.place<frozen, 192>, train.role = #train.parameter<"s", run = frozen>
// PLACES: kernel.place<frozen, 256>, train.role = #train.parameter<"z", run = frozen>
module attributes {
  train.frozen_storage = {
    w = #train.quantized<tensor<4x32xf32> by [4, 0, 8, 4, 32, 1, 32, 32, 1, 1, 0, 1], tensor<4x16xui8>, "s" as tensor<4x1xf16>>,
    v = #train.quantized<tensor<4x32xf32> by [8, 1, 0, 4, 32, 1, 32, 32, 1, 1, 0, 1], tensor<4x32xi8>, "s" as tensor<4x1xf16>, "z" as tensor<4xi8>>,
    s = f16, z = i8},
  train.layout = #train.layout<runs = [32, 0, 0, 256], parameters = [
    #train.placed<"b", decayed at 0, 4 elements>, #train.placed<"w", frozen at 32, 128 elements>,
    #train.placed<"v", frozen at 160, 128 elements>]>} {
  func.func @forward_backward(
      %w: tensor<4x32xf32> {train.role = #train.parameter<"w", run = frozen>},
      %v: tensor<4x32xf32> {train.role = #train.parameter<"v", run = frozen>},
      %ids: tensor<2xi64> {train.role = #train.input<"ids">})
      -> (tensor<4x32xbf16>, tensor<4x32xf32>, tensor<128xf32>, tensor<2x32xf32>) {
    %0 = nn.cast %w : (tensor<4x32xf32>) -> tensor<4x32xbf16>
    %1 = nn.exp %0 : (tensor<4x32xbf16>) -> tensor<4x32xbf16>
    %2 = nn.sin %w : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %3 = nn.reshape %w : (tensor<4x32xf32>) -> tensor<128xf32>
    %4 = nn.cos %3 : (tensor<128xf32>) -> tensor<128xf32>
    %5 = nn.gather %v, %ids : (tensor<4x32xf32>, tensor<2xi64>) -> tensor<2x32xf32>
    return %1, %2, %4, %5 : tensor<4x32xbf16>, tensor<4x32xf32>, tensor<128xf32>, tensor<2x32xf32>
  }
}
