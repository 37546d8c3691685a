// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section F64 %s | %trainc-opt -set-precision=to=f64 | %FileCheck %s --check-prefix=F64
// RUN: %section F64 %s | %trainc-opt -set-precision=to=f32 | %FileCheck %s --check-prefix=F32
// RUN: %section BF16 %s | %trainc-opt -set-precision=to=bf16 | %FileCheck %s --check-prefix=BF16
// RUN: %section BF16 %s | %trainc-opt -set-precision=to=fp16 | %FileCheck %s --check-prefix=FP16
// RUN: %section KEPT %s | %trainc-opt '-set-precision=to=bf16 keep=h\.[01]' | %FileCheck %s --check-prefix=KEPT
// RUN: %section KEPT %s | not %trainc-opt '-set-precision=to=bf16 keep=h.1.fd' 2>&1 | %FileCheck %s --check-prefix=NONE
// RUN: %section F64 %s | not %trainc-opt -set-precision=to=f8 2>&1 | %FileCheck %s --check-prefix=UNKNOWN

// F64
// F64: module attributes {train.precision = "f64"}
// F64: func.func @model(%arg0: tensor<2x3xf64> {train.role = #train.input<"x">}, %arg1: tensor<2xi64>) -> (tensor<2x3xf64> {train.role = #train.output<"y">})
// F64: nn.constant dense<{{\[}}[1.000000e+00, 2.500000e+00, -1.000000e+00], {{.*}}]> : tensor<2x3xf64>
// F64: nn.constant dense<5.000000e-01> : tensor<2x3xf64>
// F64: nn.cast %{{.*}} : (tensor<2xi64>) -> tensor<2xf64>
// F64-NOT: f32
// F32: func.func @model(%arg0: tensor<2x3xf32>
// F32-NOT: f64
func.func @model(%x: tensor<2x3xf32> {train.role = #train.input<"x">}, %i: tensor<2xi64>)
    -> (tensor<2x3xf32> {train.role = #train.output<"y">}) {
  %0 = nn.constant dense<[[1.0, 2.5, -1.0], [0.0, 4.0, 8.0]]> : tensor<2x3xf32>
  %1 = nn.constant dense<0.5> : tensor<2x3xf32>
  %2 = nn.add %x, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = nn.mul %2, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = nn.cast %i : (tensor<2xi64>) -> tensor<2xf32>
  %5 = nn.broadcast %4 {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x3xf32>
  %6 = nn.add %3, %5 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %6 : tensor<2x3xf32>
}

// UNKNOWN: error: set-precision: option 'to=f8': expects one of f32, bf16, fp16, f64; found 'f8'
// UNKNOWN-NEXT: note: try: to=f

// -----

// BF16
// A weight is rounded in front of its view; what the product makes is rounded, and read as f32. Nothing else changes.
// BF16: %[[X:.*]] = nn.cast %arg0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// BF16: %[[ROUNDED:.*]] = nn.cast %arg1 : (tensor<16x8xf32>) -> tensor<16x8xbf16>
// BF16: %[[W:.*]] = nn.transpose %[[ROUNDED]] {{.*}}-> tensor<8x16xbf16>
// BF16: %[[SUMS:.*]] = nn.matmul %[[X]], %[[W]] : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xf32>
// BF16: %[[Y:.*]] = nn.cast %[[SUMS]] : (tensor<4x16xf32>) -> tensor<4x16xbf16>
// BF16: %[[WIDE:.*]] = nn.cast %[[Y]] : (tensor<4x16xbf16>) -> tensor<4x16xf32>
// FP16: %[[X:.*]] = nn.cast %arg0 : (tensor<4x8xf32>) -> tensor<4x8xf16>
// FP16: nn.matmul %[[X]], %{{.*}} : (tensor<4x8xf16>, tensor<8x16xf16>) -> tensor<4x16xf32>
// FP16: nn.cast %{{.*}} : (tensor<4x16xf32>) -> tensor<4x16xf16>
// BF16: nn.exp %[[WIDE]] : (tensor<4x16xf32>) -> tensor<4x16xf32>
func.func @model(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> {
  %0 = nn.transpose %w {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %1 = nn.matmul %x, %0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %2 = nn.exp %1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}
// BF16: func.func @filters
// BF16: %[[IMAGE:.*]] = nn.cast %arg0 : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xbf16>
// BF16: %[[FILTER:.*]] = nn.cast %arg1 : (tensor<4x3x3x3xf32>) -> tensor<4x3x3x3xbf16>
// BF16: %[[SUMS:.*]] = nn.convolution %[[IMAGE]], %[[FILTER]] {{.*}}bf16>) -> tensor<2x4x6x6xf32>
// BF16: %[[Y:.*]] = nn.cast %[[SUMS]] : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xbf16>
// BF16: %[[WIDE:.*]] = nn.cast %[[Y]] : (tensor<2x4x6x6xbf16>) -> tensor<2x4x6x6xf32>
// BF16: return %[[WIDE]]
func.func @filters(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
  %y = nn.convolution %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return %y : tensor<2x4x6x6xf32>
}

// -----

// KEPT
// Products of a node or of a module around it stay as they are.
// KEPT: nn.matmul %arg0, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// KEPT: nn.matmul %{{.*}} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xf32>
// NONE: error: no product is of a node or module whose name 'h.1.fd' matches as a whole
// NONE: try: one of h.1.fc, h.2.fc
func.func @model(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("h.1.fc")
  %1 = nn.matmul %0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("h.2.fc")
  return %1 : tensor<4x4xf32>
}
