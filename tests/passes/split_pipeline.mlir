// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section CHAIN %s | %trainc-opt -form-products '-split-pipeline=stages=2 micro-batches=4' | %FileCheck %s --check-prefix=TWO
// RUN: %section CHAIN %s | %trainc-opt -form-products '-split-pipeline=stages=2 cuts=l1.act micro-batches=4 schedule=gpipe' -fuse -lower-to-kernels -order-operations -plan-memory | %FileCheck %s --check-prefix=PLACES
// RUN: %section CHAIN %s | %trainc-opt -form-products -split-pipeline | %FileCheck %s --check-prefix=ONE
// RUN: %section CHAIN %s | %trainc-opt -form-products '-split-pipeline=stages=2 cuts=l1.act micro-batches=4 schedule=zb-h1' | %FileCheck %s --check-prefix=ZERO
// RUN: %section CHAIN %s | not %trainc-opt -form-products '-split-pipeline=stages=9 micro-batches=9' 2>&1 | %FileCheck %s --check-prefix=MANY
// RUN: %section CHAIN %s | not %trainc-opt -form-products '-split-pipeline=stages=2 cuts=l9.act' 2>&1 | %FileCheck %s --check-prefix=UNKNOWN
// RUN: %section CHAIN %s | not %trainc-opt -form-products '-split-pipeline=stages=2 cuts=loss' 2>&1 | %FileCheck %s --check-prefix=LAST

// Three layers, the first and the last with one weight.
// CHAIN

// ONE-NOT: train.pipeline
// ONE: func.func @forward_backward

// What crosses has a name, the same as a result and as an argument; what fuse would compute again is no part of it.
// TWO: train.pipeline = #train.pipeline<stages = 2, chunks_per_stage = 1, micro_batches = 4, schedule = "1f1b", cuts = ["[[CUT:.*]]"]>
// TWO-LABEL: func.func @forward_0
// TWO-SAME: #train.kept<"
// TWO-SAME: train.chunk = #train.chunk<forward of 0>
// TWO-LABEL: func.func @forward_1
// TWO-SAME: #train.kept<"
// TWO-SAME: #train.loss
// TWO-SAME: train.chunk = #train.chunk<forward of 1>

// The gradient of the tied weight is on the first stage; the other use's contribution travels.
// TWO-LABEL: func.func @backward_0
// TWO-SAME: #train.passed<
// TWO-SAME: #train.passed<
// TWO-SAME: #train.gradient<"w1">
// TWO-SAME: train.chunk = #train.chunk<backward of 0>
// TWO-LABEL: func.func @backward_1
// TWO-SAME: #train.passed<
// TWO-SAME: #train.passed<
// TWO-NOT: func.func @forward_backward

// Inputs lie in the stash, like all that is kept: other micro-batches come before the backward pass.
// PLACES-LABEL: func.func @forward_0
// PLACES-SAME: kernel.place = #kernel.place<stash, 0>, train.role = #train.input<"x">
// PLACES-SAME: kernel.place = #kernel.place<stash, [[AT:[0-9]+]]>, train.role = #train.kept<"l1.act">
// PLACES-SAME: kernel.chunk_bytes
// PLACES-LABEL: func.func @forward_1
// PLACES-SAME: kernel.place = #kernel.place<stash, 0>, train.role = #train.kept<"l1.act">
// PLACES-LABEL: func.func @backward_0
// PLACES-SAME: kernel.place = #kernel.place<activations, 0>, train.role = #train.passed<

// Weight gradients that nobody waits for have a function, which reads the gradient of the product's result from the
// slot; the first chunk has one function for all, and the contribution to its tied weight is waited for.
// ZERO-LABEL: func.func @backward_0
// ZERO-SAME: #train.gradient<"w1">
// ZERO-LABEL: func.func @backward_1
// ZERO-SAME: #train.passed<
// ZERO-SAME: #train.kept<"
// ZERO-SAME: train.chunk = #train.chunk<backward of 1>
// ZERO: func.func @weight_gradient_0() attributes {train.chunk = #train.chunk<weight_gradient of 0>}
// ZERO-LABEL: func.func @weight_gradient_1
// ZERO-SAME: #train.kept<"
// ZERO-SAME: #train.gradient<"w2">
// ZERO: kernel.matmul
// ZERO-NEXT: return

// MANY: error: the model has {{[0-9]+}} narrow cuts, too few for 9 stages
// MANY-NEXT: note: try: --stages
// UNKNOWN: error: no node of the forward pass is called 'l9.act'
// UNKNOWN-NEXT: note: try: --cut with
// LAST: error: there is no cut after node 'loss': it is the last
// LAST-NEXT: note: try: cuts in the order of the model
func.func @forward_backward(%x: tensor<256x256xf32> {train.role = #train.input<"x">},
                            %w1: tensor<256x256xf32> {train.role = #train.parameter<"w1">},
                            %w2: tensor<256x256xf32> {train.role = #train.parameter<"w2">})
    -> (tensor<f32> {train.role = #train.loss},
        tensor<256x256xf32> {train.role = #train.gradient<"w1">},
        tensor<256x256xf32> {train.role = #train.gradient<"w2">}) {
  %h1 = nn.matmul %x, %w1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("l1.linear")
  %a1 = nn.exp %h1 : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("l1.act")
  %h2 = nn.matmul %a1, %w2 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("l2.linear")
  %a2 = nn.exp %h2 : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("l2.act")
  %h3 = nn.matmul %a2, %w1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("l3.linear")
  %a3 = nn.exp %h3 : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("l3.act")
  %loss = nn.reduce_sum %a3 {dimensions = array<i64: 0, 1>} : (tensor<256x256xf32>) -> tensor<f32> loc("loss")
  %g3 = nn.matmul %a2, %a3 {transpose_a} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("l3.linear"))
  %u2 = nn.matmul %a3, %w1 {transpose_b} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("l3.linear"))
  %d2 = nn.mul %u2, %a2 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("l2.act"))
  %g2 = nn.matmul %a1, %d2 {transpose_a} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("l2.linear"))
  %u1 = nn.matmul %d2, %w2 {transpose_b} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("l2.linear"))
  %d1 = nn.mul %u1, %a1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("l1.act"))
  %g1 = nn.matmul %x, %d1 {transpose_a} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("l1.linear"))
  %sum = nn.add %g3, %g1 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("gradient"("w1"))
  return %loss, %sum, %g2 : tensor<f32>, tensor<256x256xf32>, tensor<256x256xf32>
}
