// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -split-input-file -raise-attention | %FileCheck %s

// Scaled scores; keys are transposed by hand.
// CHECK-LABEL: func.func @plain
// CHECK: %[[K:.*]] = nn.transpose %arg1 {permutation = array<i64: 0, 1, 3, 2>}
// CHECK: %[[Y:.*]]:2 = nn.attention %arg0, %[[K]], %arg2 {scale = 5.000000e-01 : f64} : (tensor<2x3x5x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x7xf32>)
// CHECK-NEXT: return %[[Y]]#0
func.func @plain(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x4x6xf32>, %v: tensor<2x3x6x7xf32>) -> tensor<2x3x5x7xf32> {
  %half = nn.constant dense<0.5> : tensor<2x3x5x6xf32>
  %0 = nn.matmul %q, %k : (tensor<2x3x5x4xf32>, tensor<2x3x4x6xf32>) -> tensor<2x3x5x6xf32>
  %1 = nn.mul %0, %half : (tensor<2x3x5x6xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  %2 = nn.softmax %1 : (tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  %3 = nn.matmul %2, %v : (tensor<2x3x5x6xf32>, tensor<2x3x6x7xf32>) -> tensor<2x3x5x7xf32>
  return %3 : tensor<2x3x5x7xf32>
}

// -----

// A root of the scale on queries and on keys, in front of a view; no batch.
// CHECK-LABEL: func.func @roots
// CHECK: %[[K:.*]] = nn.reshape %arg1 : (tensor<24xf32>) -> tensor<1x6x4xf32>
// CHECK: nn.attention %{{.*}}, %[[K]], %{{.*}} {masked_to_zero, scale = 1.250000e-01 : f64} : (tensor<1x5x4xf32>, tensor<1x6x4xf32>, tensor<1x6x7xf32>)
func.func @roots(%q: tensor<5x4xf32>, %k: tensor<24xf32>, %v: tensor<6x7xf32>) -> tensor<5x7xf32> {
  %half = nn.constant dense<0.5> : tensor<24xf32>
  %four = nn.constant dense<4.0> : tensor<5x4xf32>
  %0 = nn.mul %half, %k : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %1 = nn.reshape %0 : (tensor<24xf32>) -> tensor<6x4xf32>
  %2 = nn.div %q, %four : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = nn.matmul %2, %1 {transpose_b} : (tensor<5x4xf32>, tensor<6x4xf32>) -> tensor<5x6xf32>
  %4 = nn.softmax %3 {masked_to_zero} : (tensor<5x6xf32>) -> tensor<5x6xf32>
  %5 = nn.matmul %4, %v : (tensor<5x6xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  return %5 : tensor<5x7xf32>
}

// -----

// A triangle that is added, of -infinity or of a number that is alone; with other masks the number
// stays a mask, as a query may then see no key.
// CHECK-LABEL: func.func @added_triangles
// CHECK: %[[M:.*]] = nn.constant {{.*}} : tensor<1x3x3xf32>
// CHECK: %[[Y:.*]]:2 = nn.attention %arg0, %arg1, %arg2 {reach = 0 : i64, scale = 1.000000e+00 : f64}
// CHECK: %[[PAD:.*]] = nn.reshape %arg3 : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
// CHECK: nn.attention %arg0, %arg1, %arg2, %[[M]], %[[PAD]] {scale = 1.000000e+00 : f64}
// CHECK: nn.attention %arg0, %arg1, %arg2, %[[PAD]] {reach = 0 : i64, scale = 1.000000e+00 : f64}
// CHECK: return %[[Y]]#0, %[[Y]]#0,
func.func @added_triangles(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>, %pad: tensor<2x3xf32>)
    -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %infinite = nn.constant dense<[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %large = nn.constant dense<[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %i = nn.broadcast %infinite {dimensions = array<i64: 1, 2>} : (tensor<3x3xf32>) -> tensor<2x3x3xf32>
  %l = nn.broadcast %large {dimensions = array<i64: 1, 2>} : (tensor<3x3xf32>) -> tensor<2x3x3xf32>
  %p = nn.broadcast %pad {dimensions = array<i64: 0, 2>} : (tensor<2x3xf32>) -> tensor<2x3x3xf32>
  %s0 = nn.matmul %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %a0 = nn.add %s0, %i : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %w0 = nn.softmax %a0 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %y0 = nn.matmul %w0, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %s1 = nn.matmul %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %a1 = nn.add %l, %s1 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %w1 = nn.softmax %a1 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %y1 = nn.matmul %w1, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %s2 = nn.matmul %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %a2 = nn.add %s2, %l : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %b2 = nn.add %a2, %p : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %w2 = nn.softmax %b2 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %y2 = nn.matmul %w2, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %s3 = nn.matmul %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %a3 = nn.add %i, %p : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %b3 = nn.add %s3, %a3 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %w3 = nn.softmax %b3 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %y3 = nn.matmul %w3, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y0, %y1, %y2, %y3 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// Conditions: a comparison of indices with more keys than queries, a table of hidden keys, pads of
// an input; scores replaced by a number that not every score vanishes beside stay as they are.
// CHECK-LABEL: func.func @conditions
// CHECK: nn.attention %arg0, %arg1, %arg2 {reach = 2 : i64, scale = 1.000000e+00 : f64}
// CHECK: nn.attention %arg0, %arg1, %arg2 {reach = 0 : i64, scale = 1.000000e+00 : f64}
// CHECK: %[[PAD:.*]] = nn.reshape %arg3 : (tensor<2x4xi1>) -> tensor<2x1x4xi1>
// CHECK: %[[M:.*]] = nn.select %[[PAD]], %{{.*}}, %{{.*}} : (tensor<2x1x4xi1>, tensor<2x1x4xf32>, tensor<2x1x4xf32>)
// CHECK: nn.attention %arg0, %arg1, %arg2, %[[M]] {scale = 1.000000e+00 : f64}
// CHECK: nn.softmax
func.func @conditions(%q: tensor<2x2x4xf32>, %k: tensor<2x4x4xf32>, %v: tensor<2x4x4xf32>, %pad: tensor<2x4xi1>)
    -> (tensor<2x2x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4xf32>) {
  %row = nn.iota {dimension = 0 : i64} : () -> tensor<2x4xi64>
  %column = nn.iota {dimension = 1 : i64} : () -> tensor<2x4xi64>
  %two = nn.constant dense<2> : tensor<2x4xi64>
  %last = nn.add %row, %two : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi64>
  %seen = nn.less_or_equal %column, %last : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
  %c0 = nn.broadcast %seen {dimensions = array<i64: 1, 2>} : (tensor<2x4xi1>) -> tensor<2x2x4xi1>
  %table = nn.constant dense<[[[false, true, true, true], [false, false, true, true]]]> : tensor<1x2x4xi1>
  %c1 = nn.broadcast %table {dimensions = array<i64: 0, 1, 2>} : (tensor<1x2x4xi1>) -> tensor<2x2x4xi1>
  %c2 = nn.broadcast %pad {dimensions = array<i64: 0, 2>} : (tensor<2x4xi1>) -> tensor<2x2x4xi1>
  %infinite = nn.constant dense<0xFF800000> : tensor<2x2x4xf32>
  %least = nn.constant dense<-3.4028234663852886E+38> : tensor<2x2x4xf32>
  %large = nn.constant dense<-1.0e9> : tensor<2x2x4xf32>
  %s0 = nn.matmul %q, %k {transpose_b} : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %a0 = nn.select %c0, %s0, %infinite : (tensor<2x2x4xi1>, tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %w0 = nn.softmax %a0 : (tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %y0 = nn.matmul %w0, %v : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %s1 = nn.matmul %q, %k {transpose_b} : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %a1 = nn.select %c1, %least, %s1 : (tensor<2x2x4xi1>, tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %w1 = nn.softmax %a1 : (tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %y1 = nn.matmul %w1, %v : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %s2 = nn.matmul %q, %k {transpose_b} : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %a2 = nn.select %c2, %s2, %least : (tensor<2x2x4xi1>, tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %w2 = nn.softmax %a2 : (tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %y2 = nn.matmul %w2, %v : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %s3 = nn.matmul %q, %k {transpose_b} : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %a3 = nn.select %c2, %s3, %large : (tensor<2x2x4xi1>, tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %w3 = nn.softmax %a3 : (tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %y3 = nn.matmul %w3, %v : (tensor<2x2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  return %y0, %y1, %y2, %y3 : tensor<2x2x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4xf32>
}

// -----

// Windows of an image: a bias of heads, then a mask of windows where these have a dimension.
// CHECK-LABEL: func.func @windows
// CHECK-DAG: %[[BIAS:.*]] = nn.reshape %arg3 : (tensor<3x4x4xf32>) -> tensor<1x1x3x4x4xf32>
// CHECK-DAG: %[[MASK:.*]] = nn.reshape %arg4 : (tensor<2x4x4xf32>) -> tensor<1x2x1x4x4xf32>
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[BIAS]], %[[MASK]] {scale = 1.000000e+00 : f64} : (tensor<5x2x3x4x6xf32>
func.func @windows(%q: tensor<10x3x4x6xf32>, %k: tensor<10x3x4x6xf32>, %v: tensor<10x3x4x6xf32>, %bias: tensor<3x4x4xf32>, %mask: tensor<2x4x4xf32>) -> tensor<10x3x4x6xf32> {
  %b = nn.broadcast %bias {dimensions = array<i64: 1, 2, 3>} : (tensor<3x4x4xf32>) -> tensor<10x3x4x4xf32>
  %m = nn.broadcast %mask {dimensions = array<i64: 1, 3, 4>} : (tensor<2x4x4xf32>) -> tensor<5x2x3x4x4xf32>
  %0 = nn.matmul %q, %k {transpose_b} : (tensor<10x3x4x6xf32>, tensor<10x3x4x6xf32>) -> tensor<10x3x4x4xf32>
  %1 = nn.add %0, %b : (tensor<10x3x4x4xf32>, tensor<10x3x4x4xf32>) -> tensor<10x3x4x4xf32>
  %2 = nn.reshape %1 : (tensor<10x3x4x4xf32>) -> tensor<5x2x3x4x4xf32>
  %3 = nn.add %2, %m : (tensor<5x2x3x4x4xf32>, tensor<5x2x3x4x4xf32>) -> tensor<5x2x3x4x4xf32>
  %4 = nn.reshape %3 : (tensor<5x2x3x4x4xf32>) -> tensor<10x3x4x4xf32>
  %5 = nn.softmax %4 : (tensor<10x3x4x4xf32>) -> tensor<10x3x4x4xf32>
  %6 = nn.matmul %5, %v : (tensor<10x3x4x4xf32>, tensor<10x3x4x6xf32>) -> tensor<10x3x4x6xf32>
  return %6 : tensor<10x3x4x6xf32>
}

// -----

// Rows of heads that share a key, one after the other.
// CHECK-LABEL: func.func @grouped
// CHECK: nn.attention %arg0, %arg1, %arg2 {masked_to_zero, scale = 5.000000e-01 : f64} : (tensor<2x6x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>)
func.func @grouped(%q: tensor<2x6x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x6x5x4xf32> {
  %half = nn.constant dense<0.5> : tensor<2x6x5x7xf32>
  %0 = nn.reshape %q : (tensor<2x6x5x4xf32>) -> tensor<2x3x10x4xf32>
  %1 = nn.matmul %0, %k {transpose_b} : (tensor<2x3x10x4xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x10x7xf32>
  %2 = nn.reshape %1 : (tensor<2x3x10x7xf32>) -> tensor<2x6x5x7xf32>
  %3 = nn.mul %2, %half : (tensor<2x6x5x7xf32>, tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  %4 = nn.softmax %3 {masked_to_zero} : (tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  %5 = nn.reshape %4 : (tensor<2x6x5x7xf32>) -> tensor<2x3x10x7xf32>
  %6 = nn.matmul %5, %v : (tensor<2x3x10x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x10x4xf32>
  %7 = nn.reshape %6 : (tensor<2x3x10x4xf32>) -> tensor<2x6x5x4xf32>
  return %7 : tensor<2x6x5x4xf32>
}

// -----

// Heads of keys that are repeated for queries, as exporters write it, with a root of the scale.
// CHECK-LABEL: func.func @repeated
// CHECK-NEXT: nn.attention %arg0, %arg1, %arg2 {scale = 5.000000e-01 : f64} : (tensor<2x6x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>)
func.func @repeated(%q: tensor<2x6x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x6x5x4xf32> {
  %half = nn.constant dense<0.5> : tensor<2x6x4x7xf32>
  %0 = nn.broadcast %k {dimensions = array<i64: 0, 1, 3, 4>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x2x7x4xf32>
  %1 = nn.reshape %0 : (tensor<2x3x2x7x4xf32>) -> tensor<12x7x4xf32>
  %2 = nn.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<12x7x4xf32>) -> tensor<12x4x7xf32>
  %3 = nn.reshape %2 : (tensor<12x4x7xf32>) -> tensor<2x6x4x7xf32>
  %4 = nn.mul %3, %half : (tensor<2x6x4x7xf32>, tensor<2x6x4x7xf32>) -> tensor<2x6x4x7xf32>
  %5 = nn.broadcast %v {dimensions = array<i64: 0, 1, 3, 4>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x2x7x4xf32>
  %6 = nn.reshape %5 : (tensor<2x3x2x7x4xf32>) -> tensor<2x6x7x4xf32>
  %7 = nn.matmul %q, %4 : (tensor<2x6x5x4xf32>, tensor<2x6x4x7xf32>) -> tensor<2x6x5x7xf32>
  %8 = nn.softmax %7 : (tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  %9 = nn.matmul %8, %6 : (tensor<2x6x5x7xf32>, tensor<2x6x7x4xf32>) -> tensor<2x6x5x4xf32>
  return %9 : tensor<2x6x5x4xf32>
}

// -----

// What somebody else reads has to be there: weights, or scores.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK-NOT: nn.attention
func.func @read_elsewhere(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>)
    -> (tensor<2x3x4xf32>, tensor<2x3x3xf32>, tensor<2x3x4xf32>, tensor<2x3x3xf32>) {
  %0 = nn.matmul %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %1 = nn.softmax %0 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %2 = nn.matmul %1, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = nn.matmul %k, %q {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %4 = nn.softmax %3 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %5 = nn.matmul %4, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2, %1, %5, %3 : tensor<2x3x4xf32>, tensor<2x3x3xf32>, tensor<2x3x4xf32>, tensor<2x3x3xf32>
}

// -----

// Dropout of the weights: one attention for training, one for inference. Another factor than that of
// what is kept is another model.
// CHECK-LABEL: func.func @dropout
// CHECK: %[[IN:.*]]:2 = nn.attention %arg0, %arg1, %arg2 {reach = 0 : i64, scale = 1.000000e+00 : f64}
// CHECK: %[[TRAINS:.*]]:2 = nn.attention %arg0, %arg1, %arg2 {dropped = 268435456 : i64, reach = 0 : i64, scale = 1.000000e+00 : f64, stream = 6 : i64}
// CHECK: nn.training_form %[[TRAINS]]#0, %[[IN]]#0
// CHECK: nn.softmax
func.func @dropout(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %infinite = nn.constant dense<[[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]]> : tensor<1x3x3xf32>
  %mask = nn.broadcast %infinite {dimensions = array<i64: 0, 1, 2>} : (tensor<1x3x3xf32>) -> tensor<2x3x3xf32>
  %quarter = nn.constant dense<268435456> : tensor<2x3x3xi64>
  %factor = nn.constant dense<1.33333333> : tensor<2x3x3xf32>
  %two = nn.constant dense<2.0> : tensor<2x3x3xf32>
  %zero = nn.constant dense<0.0> : tensor<2x3x3xf32>
  %r = nn.random_bits {bits = 30 : i64, stream = 6 : i64} : () -> tensor<2x3x3xi64>
  %keep = nn.greater_or_equal %r, %quarter : (tensor<2x3x3xi64>, tensor<2x3x3xi64>) -> tensor<2x3x3xi1>
  %0 = nn.matmul %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %1 = nn.add %0, %mask : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %2 = nn.softmax %1 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %3 = nn.select %keep, %factor, %zero : (tensor<2x3x3xi1>, tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %4 = nn.mul %2, %3 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %5 = nn.training_form %4, %2 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %6 = nn.matmul %5, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %7 = nn.matmul %k, %q {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %8 = nn.softmax %7 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %9 = nn.select %keep, %two, %zero : (tensor<2x3x3xi1>, tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %10 = nn.mul %8, %9 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %11 = nn.training_form %10, %8 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %12 = nn.matmul %11, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %6, %12 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}
