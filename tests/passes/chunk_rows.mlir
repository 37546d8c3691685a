// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section ENTROPY %s | %trainc-opt --pass-pipeline="builtin.module(chunk-rows{limit=256})" | %FileCheck %s --check-prefix=ENTROPY
// RUN: %section UNEVEN %s | %trainc-opt --pass-pipeline="builtin.module(chunk-rows{limit=200})" | %FileCheck %s --check-prefix=UNEVEN
// RUN: %section SMALL %s | %trainc-opt --pass-pipeline="builtin.module(chunk-rows{limit=512})" | %FileCheck %s --check-prefix=SMALL
// RUN: %section KEPT %s | %trainc-opt --pass-pipeline="builtin.module(chunk-rows{limit=64})" | %FileCheck %s --check-prefix=KEPT
// RUN: %section MANY %s | %trainc-opt --pass-pipeline="builtin.module(chunk-rows{limit=64})" | %FileCheck %s --check-prefix=MANY

// What reads rows is computed with them; the rows of results are joined, the weight's gradient is added.
// ENTROPY
// ENTROPY-LABEL: func.func @entropy(
// ENTROPY-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x3xf32>, %[[W:[a-z0-9]+]]: tensor<16x3xf32>, %[[S:[a-z0-9]+]]: tensor<2x4xf32>
// ENTROPY: %[[X0:.*]] = nn.slice %[[ROWS:.*]] {sizes = array<i64: 4, 3>, starts = array<i64: 0, 0>
// ENTROPY: %[[L0:.*]] = nn.matmul %[[X0]], %[[W]] {transpose_b} : (tensor<4x3xf32>, tensor<16x3xf32>) -> tensor<4x16xf32>
// ENTROPY: %[[M0:.*]] = nn.reduce_max %[[L0]] {dimensions = array<i64: 1>}
// ENTROPY: nn.broadcast %[[M0]] {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x16xf32>
// ENTROPY: %[[DX0:.*]] = nn.matmul %[[D0:.*]], %[[W]] : (tensor<4x16xf32>
// ENTROPY: %[[DW0:.*]] = nn.matmul %[[D0]], %[[X0]] {transpose_a}
// ENTROPY: %[[B0:.*]] = nn.reduce_sum %[[D0]] {dimensions = array<i64: 0>} : (tensor<4x16xf32>) -> tensor<16xf32>
// ENTROPY: %[[X1:.*]] = nn.slice %[[ROWS]] {sizes = array<i64: 4, 3>, starts = array<i64: 4, 0>
// ENTROPY: %[[DX1:.*]] = nn.matmul %[[D1:.*]], %[[W]] : (tensor<4x16xf32>
// ENTROPY: %[[DW1:.*]] = nn.matmul %[[D1]], %[[X1]] {transpose_a}
// ENTROPY: %[[DW:.*]] = nn.add %[[DW0]], %[[DW1]]
// ENTROPY: nn.concat %[[DX0]], %[[DX1]] {dimension = 0 : i64}
// ENTROPY-NOT: tensor<8x16x
// ENTROPY-NOT: tensor<2x4x16x
func.func @entropy(%x: tensor<2x4x3xf32>, %w: tensor<16x3xf32>, %scale: tensor<2x4xf32>)
    -> (tensor<2x4xf32>, tensor<8x3xf32>, tensor<16x3xf32>, tensor<16xf32>) {
  %rows = nn.reshape %x : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
  %product = nn.matmul %rows, %w {transpose_b} : (tensor<8x3xf32>, tensor<16x3xf32>) -> tensor<8x16xf32>
  %logits = nn.reshape %product : (tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %largest = nn.reduce_max %logits {dimensions = array<i64: 2>} : (tensor<2x4x16xf32>) -> tensor<2x4xf32>
  %spread = nn.broadcast %largest {dimensions = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<2x4x16xf32>
  %shifted = nn.sub %logits, %spread : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %exponential = nn.exp %shifted : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %sum = nn.reduce_sum %exponential {dimensions = array<i64: 2>} : (tensor<2x4x16xf32>) -> tensor<2x4xf32>
  %loss = nn.log %sum : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %factor = nn.div %scale, %sum : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %factors = nn.broadcast %factor {dimensions = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<2x4x16xf32>
  %gradient = nn.mul %exponential, %factors : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %flat = nn.reshape %gradient : (tensor<2x4x16xf32>) -> tensor<8x16xf32>
  %dx = nn.matmul %flat, %w : (tensor<8x16xf32>, tensor<16x3xf32>) -> tensor<8x3xf32>
  %dw = nn.matmul %flat, %rows {transpose_a} : (tensor<8x16xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  %db = nn.reduce_sum %flat {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  return %loss, %dx, %dw, %db : tensor<2x4xf32>, tensor<8x3xf32>, tensor<16x3xf32>, tensor<16xf32>
}

// -----

// 5 rows of 64 bytes, three at most: two chunks of three and two. A matrix from outside that is made of
// little is made for each chunk, any other one is cut.
// UNEVEN
// UNEVEN-LABEL: func.func @uneven(
// UNEVEN-NOT: tensor<5x16xi1>
// UNEVEN: nn.slice %{{.*}} {sizes = array<i64: 3, 16>, starts = array<i64: 0, 0>
// UNEVEN: nn.iota {dimension = 1 : i64} : () -> tensor<3x16xi64>
// UNEVEN: nn.matmul {{.*}} tensor<2x16xf32>
// UNEVEN: nn.slice %{{.*}} {sizes = array<i64: 2, 16>, starts = array<i64: 3, 0>
func.func @uneven(%x: tensor<5x3xf32>, %w: tensor<3x16xf32>, %labels: tensor<5xi64>, %mask: tensor<5x16xf32>) -> tensor<5xf32> {
  %logits = nn.matmul %x, %w : (tensor<5x3xf32>, tensor<3x16xf32>) -> tensor<5x16xf32>
  %classes = nn.iota {dimension = 1 : i64} : () -> tensor<5x16xi64>
  %spread = nn.broadcast %labels {dimensions = array<i64: 0>} : (tensor<5xi64>) -> tensor<5x16xi64>
  %hit = nn.equal %classes, %spread : (tensor<5x16xi64>, tensor<5x16xi64>) -> tensor<5x16xi1>
  %masked = nn.mul %logits, %mask : (tensor<5x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
  %zero = nn.constant dense<0.0> : tensor<5x16xf32>
  %kept = nn.select %hit, %masked, %zero : (tensor<5x16xi1>, tensor<5x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
  %sum = nn.reduce_sum %kept {dimensions = array<i64: 1>} : (tensor<5x16xf32>) -> tensor<5xf32>
  return %sum : tensor<5xf32>
}

// -----

// Not above the limit.
// SMALL
// SMALL-LABEL: func.func @small(
// SMALL: nn.matmul {{.*}} -> tensor<8x16xf32>
func.func @small(%x: tensor<8x3xf32>, %w: tensor<3x16xf32>) -> tensor<8xf32> {
  %logits = nn.matmul %x, %w : (tensor<8x3xf32>, tensor<3x16xf32>) -> tensor<8x16xf32>
  %sum = nn.reduce_sum %logits {dimensions = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// -----

// The first has an operand that depends on what it leaves; the second is a result; of the third columns are
// needed; the fourth has one row.
// KEPT
// KEPT-LABEL: func.func @kept(
// KEPT-COUNT-3: nn.matmul {{.*}} -> tensor<8x16xf32>
// KEPT: nn.matmul {{.*}} -> tensor<1x32xf32>
// KEPT-NOT: nn.concat
func.func @kept(%x: tensor<8x3xf32>, %w: tensor<3x16xf32>, %one: tensor<1x3xf32>, %v: tensor<3x32xf32>)
    -> (tensor<8xf32>, tensor<8x16xf32>, tensor<16xf32>, tensor<1xf32>) {
  %hidden = nn.matmul %x, %w : (tensor<8x3xf32>, tensor<3x16xf32>) -> tensor<8x16xf32>
  %sums = nn.reduce_sum %hidden {dimensions = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  %total = nn.reduce_sum %sums {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %totals = nn.broadcast %total {dimensions = array<i64>} : (tensor<f32>) -> tensor<8x16xf32>
  %scaled = nn.mul %hidden, %totals : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %first = nn.reduce_sum %scaled {dimensions = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  %halves = nn.mul %x, %x : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %second = nn.matmul %halves, %w : (tensor<8x3xf32>, tensor<3x16xf32>) -> tensor<8x16xf32>
  %roots = nn.exp %x : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %columns = nn.matmul %roots, %w : (tensor<8x3xf32>, tensor<3x16xf32>) -> tensor<8x16xf32>
  %third = nn.reduce_max %columns {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  %row = nn.matmul %one, %v : (tensor<1x3xf32>, tensor<3x32xf32>) -> tensor<1x32xf32>
  %fourth = nn.reduce_sum %row {dimensions = array<i64: 1>} : (tensor<1x32xf32>) -> tensor<1xf32>
  return %first, %second, %third, %fourth : tensor<8xf32>, tensor<8x16xf32>, tensor<16xf32>, tensor<1xf32>
}

// -----
// A row or two would be a chunk by the limit; there are 64 chunks and no more.
// MANY
// MANY-LABEL: func.func @many(
// MANY-COUNT-64: nn.matmul {{.*}} -> tensor<16x16xf32>
// MANY-NOT: nn.matmul
func.func @many(%x: tensor<1024x3xf32>, %w: tensor<3x16xf32>) -> tensor<1024xf32> {
  %product = nn.matmul %x, %w : (tensor<1024x3xf32>, tensor<3x16xf32>) -> tensor<1024x16xf32>
  %sums = nn.reduce_sum %product {dimensions = array<i64: 1>} : (tensor<1024x16xf32>) -> tensor<1024xf32>
  return %sums : tensor<1024xf32>
}
