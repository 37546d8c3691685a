// SPDX-License-Identifier: Apache-2.0
//
// RUN: %trainc-opt %s -split-input-file -raise-patterns | %FileCheck %s
// RUN: %section NAMES %s | %trainc-opt -raise-patterns -mlir-print-debuginfo -mlir-print-local-scope | %FileCheck %s --check-prefix=NAMES

// As exporters write layer norm below opset 17: the exponent 2 as a constant, means with sizes kept.
// CHECK-LABEL: func.func @layer_norm
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %arg0 {epsilon = 9.99{{.*}}E-6 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm(%x: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
  %n = nn.constant dense<3.0> : tensor<2x4xf32>
  %eps = nn.constant dense<1.0e-5> : tensor<2x4x1xf32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.reduce_sum %x {dimensions = array<i64: 2>} : (tensor<2x4x3xf32>) -> tensor<2x4xf32>
  %1 = nn.div %0, %n : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = nn.reshape %1 : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %3 = nn.broadcast %2 {dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x1xf32>) -> tensor<2x4x3xf32>
  %4 = nn.sub %x, %3 : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %5 = nn.broadcast %two {dimensions = array<i64>} : (tensor<f32>) -> tensor<2x4x3xf32>
  %6 = nn.pow %4, %5 : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %7 = nn.reduce_sum %6 {dimensions = array<i64: 2>} : (tensor<2x4x3xf32>) -> tensor<2x4xf32>
  %8 = nn.div %7, %n : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %9 = nn.reshape %8 : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %10 = nn.add %9, %eps : (tensor<2x4x1xf32>, tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %11 = nn.sqrt %10 : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %12 = nn.broadcast %11 {dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x1xf32>) -> tensor<2x4x3xf32>
  %13 = nn.div %4, %12 : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  return %13 : tensor<2x4x3xf32>
}

// -----

// The reciprocal of the deviation, the difference computed twice and multiplied by itself.
// CHECK-LABEL: func.func @layer_norm_by_reciprocal
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %arg0
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_by_reciprocal(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %n = nn.constant dense<3.0> : tensor<4xf32>
  %eps = nn.constant dense<1.0e-6> : tensor<4xf32>
  %0 = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<4x3xf32>) -> tensor<4xf32>
  %1 = nn.div %0, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.broadcast %1 {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x3xf32>
  %3 = nn.sub %x, %2 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = nn.sub %x, %2 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %5 = nn.mul %4, %4 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %6 = nn.reduce_sum %5 {dimensions = array<i64: 1>} : (tensor<4x3xf32>) -> tensor<4xf32>
  %7 = nn.div %6, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = nn.add %eps, %7 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %9 = nn.sqrt %8 : (tensor<4xf32>) -> tensor<4xf32>
  %10 = nn.reciprocal %9 : (tensor<4xf32>) -> tensor<4xf32>
  %11 = nn.broadcast %10 {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x3xf32>
  %12 = nn.mul %11, %3 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %12 : tensor<4x3xf32>
}

// -----

// Over another dimension than the last it is not a layer norm.
// CHECK-LABEL: func.func @column_norm
// CHECK-NOT: nn.layer_norm
// CHECK: nn.sqrt
func.func @column_norm(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %n = nn.constant dense<3.0> : tensor<3xf32>
  %eps = nn.constant dense<1.0e-6> : tensor<3xf32>
  %0 = nn.reduce_sum %x {dimensions = array<i64: 0>} : (tensor<3x3xf32>) -> tensor<3xf32>
  %1 = nn.div %0, %n : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.broadcast %1 {dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<3x3xf32>
  %3 = nn.sub %x, %2 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %5 = nn.mul %3, %3 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %6 = nn.reduce_sum %5 {dimensions = array<i64: 0>} : (tensor<3x3xf32>) -> tensor<3xf32>
  %7 = nn.div %6, %n : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %8 = nn.add %eps, %7 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %9 = nn.sqrt %8 : (tensor<3xf32>) -> tensor<3xf32>
  %11 = nn.broadcast %9 {dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<3x3xf32>
  %12 = nn.div %3, %11 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %12 : tensor<3x3xf32>
}

// -----

// CHECK-LABEL: func.func @gelu
// CHECK-NEXT: %[[Y:.*]] = nn.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @gelu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = nn.constant dense<1.41421354> : tensor<4xf32>
  %one = nn.constant dense<1.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %0 = nn.div %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.add %1, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.mul %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.mul %3, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// GPT-2's, with the cube as a power.
// CHECK-LABEL: func.func @gelu_tanh
// CHECK-NEXT: %[[Y:.*]] = nn.gelu_tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @gelu_tanh(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = nn.constant dense<0.797884583> : tensor<4xf32>
  %c = nn.constant dense<4.471500e-02> : tensor<4xf32>
  %one = nn.constant dense<1.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %e = nn.constant dense<3.0> : tensor<4xf32>
  %p = nn.pow %x, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %q = nn.mul %c, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = nn.add %x, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = nn.mul %k, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.add %1, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = nn.mul %half, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.mul %h, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// x * (1 + 0.044715 x^2) inside, and 0.5 multiplied last.
// CHECK-LABEL: func.func @gelu_tanh_factored
// CHECK-NEXT: %[[Y:.*]] = nn.gelu_tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @gelu_tanh_factored(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = nn.constant dense<0.797884583> : tensor<4xf32>
  %c = nn.constant dense<4.471500e-02> : tensor<4xf32>
  %one = nn.constant dense<1.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %0 = nn.mul %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.mul %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.add %one, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.mul %x, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.mul %3, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = nn.tanh %4 : (tensor<4xf32>) -> tensor<4xf32>
  %6 = nn.add %one, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = nn.mul %x, %6 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = nn.mul %7, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %8 : tensor<4xf32>
}

// -----

// Another coefficient is another function.
// CHECK-LABEL: func.func @not_gelu
// CHECK-NOT: nn.gelu
// CHECK: nn.erf
func.func @not_gelu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = nn.constant dense<1.5> : tensor<4xf32>
  %one = nn.constant dense<1.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %0 = nn.div %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.add %1, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.mul %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.mul %3, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// x * sigmoid(x) stays: nothing is gained by another name.
// CHECK-LABEL: func.func @silu
// CHECK: nn.sigmoid
// CHECK: nn.mul
func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.mul %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// NAMES
// The raised operation has the name of the module that its nodes share.
// NAMES: nn.gelu {{.*}} loc("h.0.mlp.act")
func.func @names(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = nn.constant dense<0.707106769> : tensor<4xf32>
  %one = nn.constant dense<1.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %0 = nn.mul %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("h.0.mlp.act.mul")
  %1 = nn.erf %0 : (tensor<4xf32>) -> tensor<4xf32> loc("h.0.mlp.act.erf")
  %2 = nn.add %1, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("h.0.mlp.act.add")
  %3 = nn.mul %x, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("h.0.mlp.act.mul_1")
  %4 = nn.mul %3, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("h.0.mlp.act.mul_2")
  return %4 : tensor<4xf32>
}

// -----

// The safe softmax of attention: rows that are masked throughout are zeros.
// CHECK-LABEL: func.func @masked_softmax
// CHECK-NEXT: %[[Y:.*]] = nn.softmax %arg0 {masked_to_zero}
// CHECK-NEXT: return %[[Y]]
func.func @masked_softmax(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %zero = nn.constant dense<0.0> : tensor<4x3xf32>
  %0 = nn.softmax %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = nn.is_nan %0 : (tensor<4x3xf32>) -> tensor<4x3xi1>
  %2 = nn.select %1, %zero, %0 : (tensor<4x3xi1>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// -----

// Logits below -88 have a sigmoid of 0 in f32.
// CHECK-LABEL: func.func @log_sigmoid
// CHECK-NEXT: %[[N:.*]] = nn.neg %arg0
// CHECK-NEXT: %[[S:.*]] = nn.softplus %[[N]]
// CHECK-NEXT: %[[Y:.*]] = nn.neg %[[S]]
// CHECK-NEXT: return %[[Y]]
func.func @log_sigmoid(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = nn.sigmoid %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.log %0 : (tensor<3xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @log_of_rest
// CHECK-NEXT: %[[S:.*]] = nn.softplus %arg0
// CHECK-NEXT: %[[Y:.*]] = nn.neg %[[S]]
// CHECK-NEXT: return %[[Y]]
func.func @log_of_rest(%x: tensor<3xf32>) -> tensor<3xf32> {
  %one = nn.constant dense<1.0> : tensor<3xf32>
  %0 = nn.sigmoid %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.sub %one, %0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.log %1 : (tensor<3xf32>) -> tensor<3xf32>
  return %2 : tensor<3xf32>
}

// -----

// Equal ones have no distance, also where both are infinite.
// CHECK-LABEL: func.func @log_add_exp
// CHECK-DAG: %[[Z:.*]] = nn.constant dense<0.0{{.*}}>
// CHECK-DAG: %[[E:.*]] = nn.equal %arg0, %arg1
// CHECK-DAG: %[[D:.*]] = nn.sub %arg0, %arg1
// CHECK: %[[S:.*]] = nn.select %[[E]], %[[Z]], %[[D]]
// CHECK: %[[A:.*]] = nn.abs %[[S]]
// CHECK: %[[N:.*]] = nn.neg %[[A]]
// CHECK: %[[P:.*]] = nn.softplus %[[N]]
// CHECK: %[[M:.*]] = nn.maximum %arg0, %arg1
// CHECK: %[[Y:.*]] = nn.add %[[M]], %[[P]]
// CHECK: return %[[Y]]
func.func @log_add_exp(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = nn.exp %a : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.exp %b : (tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.add %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %3 = nn.log %2 : (tensor<3xf32>) -> tensor<3xf32>
  return %3 : tensor<3xf32>
}
