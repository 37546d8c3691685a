// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section CHAIN %s | %trainc-opt -form-products -plan-recompute --mlir-print-debuginfo | %FileCheck %s --check-prefix=NONE
// RUN: %section CHAIN %s | %trainc-opt -form-products -plan-recompute=level=light --mlir-print-debuginfo | %FileCheck %s --check-prefix=LIGHT
// RUN: %section CHAIN %s | %trainc-opt -form-products -plan-recompute=level=full --mlir-print-debuginfo | %FileCheck %s --check-prefix=FULL
// RUN: %section CHAIN %s | %trainc-opt -form-products '-plan-recompute=pattern=l2.*r' --mlir-print-debuginfo | %FileCheck %s --check-prefix=PATTERN
// RUN: %section CHAIN %s | %trainc-opt -form-products -plan-recompute=budget=100000000 | %FileCheck %s --check-prefix=PLENTY
// RUN: %section CHAIN %s | not %trainc-opt -form-products -plan-recompute=budget=1000 2>&1 | %FileCheck %s --check-prefix=UNMET
// RUN: %section RANDOM %s | %trainc-opt -form-products -plan-recompute=level=full | %FileCheck %s --check-prefix=RANDOM
// RUN: %section FORWARD %s | %trainc-opt -form-products -plan-recompute=level=full | %FileCheck %s --check-prefix=FORWARD
// RUN: %section FORWARD %s | not %trainc-opt -plan-recompute=level=most 2>&1 | %FileCheck %s --check-prefix=LEVEL

// Activations of products. The backward pass reads them, and the products too.
// CHAIN

// Nothing is done where nothing is asked for.
// NONE-NOT: kernel.recompute
// NONE-NOT: "recomputed"

// The first activation is computed again, where it is needed. The second is needed at once: nothing runs between
// forward and backward pass of the third product.
// LIGHT: kernel.recompute = {flops = {{.*}}, kept_bytes = {{[0-9]+}} : i64, rule = "light", time = {{.*}}}
// LIGHT-LABEL: func.func @forward_backward
// LIGHT: %[[H1:.*]] = kernel.matmul %arg0, %arg1
// LIGHT: nn.exp %[[H1]] : {{.*}}
// LIGHT: nn.reduce_sum
// LIGHT-NOT: kernel.repetition
// LIGHT: nn.mul
// LIGHT-NEXT: %[[A1:.*]] = nn.exp %[[H1]] {kernel.repetition} : {{.*}} loc(#[[AGAIN:.*]])
// LIGHT-NEXT: kernel.matmul %[[A1]]
// LIGHT-NOT: kernel.repetition
// LIGHT-DAG: #[[AGAIN]] = loc("recomputed"(#[[NODE:.*]]))
// LIGHT-DAG: #[[NODE]] = loc("l1.act")

// Products, too.
// FULL: rule = "full"
// FULL: nn.reduce_sum
// FULL: %[[H1:.*]] = kernel.matmul %arg0, %arg1 {{.*}}kernel.repetition
// FULL-NEXT: nn.exp %[[H1]] {kernel.repetition}

// What a pattern names is not kept, whatever it costs, and nothing else is repeated.
// PATTERN: nn.reduce_sum
// PATTERN: %[[H2:.*]] = kernel.matmul {{.*}}kernel.repetition
// PATTERN-NOT: kernel.repetition
// PATTERN: return

// PLENTY: rule = "budget of 100000000 bytes", time = 1.000000e+00
// PLENTY-NOT: kernel.repetition

// UNMET: error: the memory of a rank can be brought down to {{.*}} ({{[0-9]+}} bytes), which is more than the budget of 1000 bytes
// UNMET-SAME: activations {{.*}}; the largest activations at the peak are {{.*}}(256.00 KiB, activations)
func.func @forward_backward(%x: tensor<256x256xf32> {train.role = #train.input<"x">},
                            %w1: tensor<256x256xf32> {train.role = #train.parameter<"w1">},
                            %w2: tensor<256x256xf32> {train.role = #train.parameter<"w2">},
                            %w3: tensor<256x256xf32> {train.role = #train.parameter<"w3">})
    -> (tensor<f32> {train.role = #train.loss},
        tensor<256x256xf32> {train.role = #train.gradient<"w1">},
        tensor<256x256xf32> {train.role = #train.gradient<"w2">},
        tensor<256x256xf32> {train.role = #train.gradient<"w3">}) {
  %h1 = nn.matmul %x, %w1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("l1.linear")
  %a1 = nn.exp %h1 : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("l1.act")
  %h2 = nn.matmul %a1, %w2 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("l2.linear")
  %a2 = nn.exp %h2 : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("l2.act")
  %h3 = nn.matmul %a2, %w3 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("l3.linear")
  %a3 = nn.exp %h3 : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("l3.act")
  %loss = nn.reduce_sum %a3 {dimensions = array<i64: 0, 1>} : (tensor<256x256xf32>) -> tensor<f32> loc("loss")
  %d3 = nn.tanh %h3 : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %g3 = nn.matmul %a2, %d3 {transpose_a} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %u2 = nn.matmul %d3, %w3 {transpose_b} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %d2 = nn.mul %u2, %h2 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %g2 = nn.matmul %a1, %d2 {transpose_a} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %u1 = nn.matmul %d2, %w2 {transpose_b} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %d1 = nn.mul %u1, %h1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %g1 = nn.matmul %x, %d1 {transpose_a} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %loss, %g1, %g2, %g3 : tensor<f32>, tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>
}

// -----

// Random bits follow from key, stream and index: a mask is drawn again.
// RANDOM
// RANDOM-LABEL: func.func @forward_backward
// RANDOM: nn.random_bits %{{.*}} {bits = 24 : i64, stream = 3 : i64}
// RANDOM: nn.reduce_sum
// RANDOM: nn.random_bits %{{.*}} {bits = 24 : i64, kernel.repetition, stream = 3 : i64}
func.func @forward_backward(%x: tensor<256x256xf32> {train.role = #train.input<"x">},
                            %key: tensor<i64> {train.role = #train.random_key},
                            %w: tensor<256x256xf32> {train.role = #train.parameter<"w">})
    -> (tensor<f32> {train.role = #train.loss}, tensor<256x256xf32> {train.role = #train.gradient<"w">}) {
  %keys = nn.broadcast %key {dimensions = array<i64>} : (tensor<i64>) -> tensor<256x256xi64>
  %bits = nn.random_bits %keys {stream = 3 : i64, bits = 24 : i64} : (tensor<256x256xi64>) -> tensor<256x256xi64>
  %zero = nn.constant dense<7> : tensor<256x256xi64>
  %none = nn.constant dense<0.0> : tensor<256x256xf32>
  %mask = nn.greater_or_equal %bits, %zero : (tensor<256x256xi64>, tensor<256x256xi64>) -> tensor<256x256xi1>
  %kept = nn.select %mask, %x, %none : (tensor<256x256xi1>, tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %h = nn.matmul %kept, %w : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %a = nn.exp %h : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = nn.matmul %a, %x : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %loss = nn.reduce_sum %y {dimensions = array<i64: 0, 1>} : (tensor<256x256xf32>) -> tensor<f32>
  %da = nn.matmul %y, %x {transpose_b} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %dh = nn.mul %da, %h : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %dw = nn.matmul %kept, %dh {transpose_a} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %loss, %dw : tensor<f32>, tensor<256x256xf32>
}

// -----

// A function without gradients stays as it is.
// FORWARD
// FORWARD-NOT: kernel.recompute
// FORWARD: kernel.matmul
// FORWARD-NEXT: return
// LEVEL: error: plan-recompute: option 'level=most': expects one of none, light, full; found 'most'
// LEVEL-NEXT: note: try: level=none
func.func @evaluate(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
