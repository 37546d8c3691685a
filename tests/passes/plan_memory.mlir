// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section PLAIN %s | %trainc-opt -plan-memory | %FileCheck %s --check-prefix=PLAIN
// RUN: %section TRAIN %s | %trainc-opt -plan-memory | %FileCheck %s --check-prefix=TRAIN
// RUN: %section SHARDED %s | %trainc-opt -plan-memory | %FileCheck %s --check-prefix=SHARDED
// RUN: %section OUTPUTS %s | %trainc-opt -plan-memory | %FileCheck %s --check-prefix=OUTPUTS
// RUN: %section PHASES %s | %trainc-opt -plan-memory | %FileCheck %s --check-prefix=PHASES
// RUN: %section ADDED %s | %trainc-opt -plan-memory | %FileCheck %s --check-prefix=ADDED
// RUN: %section CALLS %s | %trainc-opt -plan-memory | %FileCheck %s --check-prefix=CALLS
// RUN: %section TAKEN %s | not %trainc-opt -plan-memory 2>&1 | %FileCheck %s --check-prefix=TAKEN
// RUN: %section UNKNOWN %s | %trainc-opt -plan-memory -verify-diagnostics -o /dev/null
// RUN: %section MODEL %s | %trainc-opt -decompose -form-products -fuse -lower-to-kernels -order-operations -plan-memory | %FileCheck %s --check-prefix=MODEL

// Arguments and results of a plain function lie one after the other, the rest after them. A dying
// tensor read at the same points is written over, also in the result's place; one read elsewhere is not.
// PLAIN
// PLAIN: kernel.arena_bytes = array<i64: 0, 0, 0, 192, 0, 64>
// PLAIN-SAME: kernel.arena_lower_bound = array<i64: 0, 0, 0, 192, 0, 64>
// PLAIN-LABEL: func.func @plain
// PLAIN-SAME: %arg0: tensor<4x4xf32> {kernel.place = #kernel.place<activations, 0>}
// PLAIN-SAME: -> (tensor<4x4xf32> {kernel.place = #kernel.place<activations, 64>})
// PLAIN: nn.constant {places = [#kernel.place<constants, 0>]} dense<{{.*}}> : tensor<4x4xf32>
// PLAIN: kernel.launch @double(%arg0) {places = [#kernel.place<activations, [[A:128]]>]}
// PLAIN-NEXT: kernel.launch @double({{.*}}) {places = [#kernel.place<activations, [[A]]>]}
// PLAIN-NEXT: kernel.launch @transpose({{.*}}) {places = [#kernel.place<activations, 64>]}
// PLAIN-NEXT: kernel.launch @add({{.*}}) {places = [#kernel.place<activations, 64>]}
kernel.function @double pointwise dims [16] reduced 0 outputs 1 accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    %1 = arith.addf %0, %0 : f32
    kernel.store %1, %y : f32, !kernel.buffer<f32>
  }
}
kernel.function @transpose pointwise dims [4, 4] reduced 0 outputs 1 accesses [#kernel.access<[1, 4], 0>, #kernel.access<[4, 1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.store %0, %y : f32, !kernel.buffer<f32>
  }
}
kernel.function @add pointwise dims [16] reduced 0 outputs 1 accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    %1 = kernel.load %y : !kernel.buffer<f32> -> f32
    %2 = arith.addf %0, %1 : f32
    kernel.store %2, %z : f32, !kernel.buffer<f32>
  }
}
func.func @plain(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c = nn.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]]> : tensor<4x4xf32>
  %0 = kernel.launch @double(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = kernel.launch @double(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = kernel.launch @transpose(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = kernel.launch @add(%2, %c) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}

// -----

// Parameters, gradients and states lie as the layout says; inputs and the loss are the same for all entries.
// TRAIN
// TRAIN: kernel.arena_bytes = array<i64: 256, 192, 384, 192, 128, 0>
// TRAIN-LABEL: func.func @forward_backward
// TRAIN-SAME: kernel.place = #kernel.place<parameters, 64>, train.role = #train.parameter<"w">
// TRAIN-SAME: kernel.place = #kernel.place<parameters, 192>, train.role = #train.parameter<"f", run = frozen>
// TRAIN-SAME: kernel.place = #kernel.place<activations, [[X:[0-9]+]]>, train.role = #train.input<"x">
// TRAIN-SAME: kernel.place = #kernel.place<activations, [[LOSS:[0-9]+]]>, train.role = #train.loss
// TRAIN-SAME: kernel.place = #kernel.place<gradients, 64>, train.role = #train.gradient<"w">
// TRAIN: kernel.launch @step{{.*}} {places = [#kernel.place<activations, [[LOSS]]>, #kernel.place<gradients, 64>]}
// TRAIN-LABEL: func.func @evaluate
// TRAIN-SAME: kernel.place = #kernel.place<activations, [[X]]>, train.role = #train.input<"x">
// TRAIN-SAME: kernel.place = #kernel.place<activations, [[LOSS]]>, train.role = #train.loss
// TRAIN-LABEL: func.func @update
// TRAIN-SAME: kernel.place = #kernel.place<parameters, 0>, train.role = #train.run_parameters<decayed>
// TRAIN-SAME: kernel.place = #kernel.place<optimizer_state, 320>, train.role = #train.state<undecayed, slot = 1>
// TRAIN-SAME: kernel.place = #kernel.place<workspace, 0>, train.role = #train.scalar<"learning_rate">
// TRAIN-SAME: kernel.place = #kernel.place<parameters, 0>, train.role = #train.run_parameters<decayed>
// TRAIN: kernel.launch @rate({{.*}}) {places = [#kernel.place<workspace, 64>]}
// TRAIN-NEXT: kernel.launch @change({{.*}}) {places = [#kernel.place<parameters, 0>]}
module attributes {train.layout = #train.layout<runs = [32, 16, 0, 16], parameters = [
    #train.placed<"v", decayed at 0, 16 elements>, #train.placed<"w", decayed at 16, 16 elements>,
    #train.placed<"b", undecayed at 32, 4 elements>, #train.placed<"f", frozen at 48, 2 elements>]>} {
  func.func @forward_backward(%w: tensor<16xf32> {train.role = #train.parameter<"w">},
                              %f: tensor<2xf32> {train.role = #train.parameter<"f", run = frozen>},
                              %x: tensor<20xf32> {train.role = #train.input<"x">})
      -> (tensor<f32> {train.role = #train.loss}, tensor<16xf32> {train.role = #train.gradient<"w">}) {
    %0:2 = kernel.launch @step(%w, %f, %x) : (tensor<16xf32>, tensor<2xf32>, tensor<20xf32>) -> (tensor<f32>, tensor<16xf32>)
    return %0#0, %0#1 : tensor<f32>, tensor<16xf32>
  }
  func.func @evaluate(%x: tensor<20xf32> {train.role = #train.input<"x">})
      -> (tensor<f32> {train.role = #train.loss}) {
    %0 = kernel.launch @loss(%x) : (tensor<20xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  kernel.function @change pointwise dims [32] reduced 0 outputs 1 accesses [#kernel.access<[1], 0>, #kernel.access<[0], 0>, #kernel.access<[1], 0>] sources [] {
  ^bb0(%p: !kernel.buffer<f32>, %rate: !kernel.buffer<f32>, %q: !kernel.buffer<f32>):
    kernel.map {
      %0 = kernel.load %p : !kernel.buffer<f32> -> f32
      %1 = kernel.load %rate : !kernel.buffer<f32> -> f32
      %2 = arith.mulf %0, %1 : f32
      kernel.store %2, %q : f32, !kernel.buffer<f32>
    }
  }
  func.func @update(%p: tensor<32xf32> {train.role = #train.run_parameters<decayed>},
                    %s: tensor<16xf32> {train.role = #train.state<undecayed, slot = 1>},
                    %rate: tensor<f64> {train.role = #train.scalar<"learning_rate">})
      -> (tensor<32xf32> {train.role = #train.run_parameters<decayed>}) {
    %0 = kernel.launch @rate(%rate) : (tensor<f64>) -> tensor<f32>
    %1 = kernel.launch @change(%p, %0) : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }
}

// -----

// Sharded gradients are activations until all ranks have read them: their place is not taken before the next bucket is whole, not by
// the step that completes it either. The arena has them once they are added.
// SHARDED
// SHARDED: kernel.arena_bytes = array<i64: 384, 384, 0, [[BYTES:[0-9]+]], 0, 0>
// SHARDED-LABEL: func.func @forward_backward
// SHARDED-SAME: kernel.place = #kernel.place<activations, [[A:[0-9]+]]>, train.role = #train.gradient<"a">
// SHARDED-SAME: kernel.place = #kernel.place<activations, [[B:[0-9]+]]>, train.role = #train.gradient<"b">
// SHARDED-SAME: kernel.place = #kernel.place<activations, [[C:[0-9]+]]>, train.role = #train.gradient<"c">
// SHARDED: kernel.launch @last{{.*}} {kernel.completes_bucket, places = [#kernel.place<activations, {{[0-9]+}}>, #kernel.place<activations, [[A]]>]}
// SHARDED-NOT: #kernel.place<activations, [[A]]>
// SHARDED: kernel.launch @double(%arg3) {places = [#kernel.place<activations, {{[0-9]+}}>]}
// SHARDED: kernel.launch @double({{.*}}) {kernel.completes_bucket, places = [#kernel.place<activations, [[B]]>]}
// SHARDED: kernel.launch @other({{.*}}) {places = [#kernel.place<activations, [[A]]>]}
// SHARDED: kernel.launch @last_but_one({{.*}}) {kernel.completes_bucket, places = [#kernel.place<activations, [[C]]>]}
module attributes {kernel.shards_gradients, train.layout = #train.layout<runs = [96, 0, 0, 0], parameters = [
    #train.placed<"a", decayed at 0, 32 elements>, #train.placed<"b", decayed at 32, 32 elements>,
    #train.placed<"c", decayed at 64, 32 elements>]>} {
  kernel.function @double pointwise dims [32] reduced 0 outputs 1 accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f32> -> f32
      %1 = arith.addf %0, %0 : f32
      kernel.store %1, %y : f32, !kernel.buffer<f32>
    }
  }
  func.func @forward_backward(%a: tensor<32xf32> {train.role = #train.parameter<"a">},
                              %b: tensor<32xf32> {train.role = #train.parameter<"b">},
                              %c: tensor<32xf32> {train.role = #train.parameter<"c">},
                              %x: tensor<32xf32> {train.role = #train.input<"x">})
      -> (tensor<f32> {train.role = #train.loss}, tensor<32xf32> {train.role = #train.gradient<"a">},
          tensor<32xf32> {train.role = #train.gradient<"b">}, tensor<32xf32> {train.role = #train.gradient<"c">}) {
    %0:2 = kernel.launch @last(%a, %x) : (tensor<32xf32>, tensor<32xf32>) -> (tensor<f32>, tensor<32xf32>)
    %1 = kernel.launch @double(%x) : (tensor<32xf32>) -> tensor<32xf32>
    %2 = kernel.launch @double(%0#1) : (tensor<32xf32>) -> tensor<32xf32>
    %3 = kernel.launch @other(%b, %1) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    %4 = kernel.launch @last_but_one(%c, %3) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    return %0#0, %0#1, %2, %4 : tensor<f32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
  }
}

// -----

// An output lives to the end of its entry: what comes later does not take its place.
// OUTPUTS
// OUTPUTS-LABEL: func.func @evaluate
// OUTPUTS-SAME: -> (tensor<16xf32> {kernel.place = #kernel.place<activations, [[LOGITS:[0-9]+]]>, train.role = #train.output<"logits">
// OUTPUTS: kernel.launch @logits(%arg0) {places = [#kernel.place<activations, [[LOGITS]]>]}
// OUTPUTS-NOT: #kernel.place<activations, [[LOGITS]]>
// OUTPUTS: return
func.func @evaluate(%x: tensor<16xf32> {train.role = #train.input<"x">})
    -> (tensor<16xf32> {train.role = #train.output<"logits">}, tensor<f32> {train.role = #train.loss}) {
  %0 = kernel.launch @logits(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = kernel.launch @rest(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = kernel.launch @loss(%1) : (tensor<16xf32>) -> tensor<f32>
  return %0, %2 : tensor<16xf32>, tensor<f32>
}

// -----

// A row kernel that reads its input again after the map that writes must not write over it.
// PHASES
// PHASES-LABEL: func.func @phases
// PHASES: kernel.launch @make(%arg0) {places = [#kernel.place<activations, [[A:[0-9]+]]>]}
// PHASES-NEXT: kernel.launch @again
// PHASES-NOT: places = [#kernel.place<activations, [[A]]>
// PHASES: return
kernel.function @again row dims [4, 4] reduced 1 outputs 2 accesses [#kernel.access<[4, 1], 0>, #kernel.access<[4, 1], 0>, #kernel.access<[1, 0], 0>] sources [] {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %s: !kernel.buffer<f32>):
  kernel.map {
    %0 = kernel.load %x : !kernel.buffer<f32> -> f32
    %1 = arith.addf %0, %0 : f32
    kernel.store %1, %y : f32, !kernel.buffer<f32>
  }
  %2 = kernel.reduce [#kernel<reduction add>] {
    %3 = kernel.load %x : !kernel.buffer<f32> -> f32
    kernel.yield %3 : f32
  } : f32
  kernel.store %2, %s : f32, !kernel.buffer<f32>
}
func.func @phases(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = kernel.launch @make(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1:2 = kernel.launch @again(%0) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  %2 = kernel.launch @use(%1#0, %1#1) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// A product that is added to another is written in its place.
// ADDED
// ADDED-LABEL: func.func @added
// ADDED: kernel.matmul %arg0, %arg0 {{.*}}places = [#kernel.place<activations, [[A:[0-9]+]]>]
// ADDED-NEXT: kernel.matmul %arg0, %arg0 init {{.*}}places = [#kernel.place<activations, [[A]]>]
func.func @added(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = kernel.matmul %x, %x {batch = array<i64: 1>, m = 4 : i64, n = 4 : i64, k = 4 : i64, matrix_a = #kernel.matrix<0, [0], 4, 1>, matrix_b = #kernel.matrix<0, [0], 4, 1>, matrix_c = #kernel.matrix<0, [0], 4, 1>} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = kernel.matmul %x, %x init %0 {batch = array<i64: 1>, m = 4 : i64, n = 4 : i64, k = 4 : i64, matrix_a = #kernel.matrix<0, [0], 4, 1>, matrix_b = #kernel.matrix<0, [0], 4, 1>, matrix_c = #kernel.matrix<0, [0], 4, 1>} : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// A call's result takes the input that it says; its scratch has a place in the workspace.
// CALLS
// CALLS: kernel.arena_bytes = array<i64: 0, 0, 0, 256, 1024, 0>
// CALLS-LABEL: func.func @calls
// CALLS: kernel.call "first" {{.*}}places = [#kernel.place<activations, [[A:[0-9]+]]>]
// CALLS-NEXT: kernel.call "second" {{.*}}places = [#kernel.place<activations, [[B:[0-9]+]]>, #kernel.place<activations, [[A]]>]
// CALLS-SAME: scratch = #kernel.place<workspace, 0>
func.func @calls(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = kernel.call "first" of "some" [] (%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1:2 = kernel.call "second" of "some" [1, 2.5, array<i64: 3, 4>] (%x, %0) {in_place = array<i64: -1, 1>, scratch_bytes = 1000} : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  %2 = kernel.call "third" of "some" [] (%1#1) : (tensor<16xf32>) -> tensor<16xf32>
  return %1#0, %2 : tensor<16xf32>, tensor<16xf32>
}

// -----

// What is read later cannot be taken.
// TAKEN
func.func @taken_too_early(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = kernel.call "first" of "some" [] (%x) : (tensor<16xf32>) -> tensor<16xf32>
  // TAKEN: internal error in plan-memory at kernel.call {{.*}}: it takes the memory of a tensor that is read later
  %1 = kernel.call "second" of "some" [] (%0) {in_place = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
  %2 = kernel.call "third" of "some" [] (%0) : (tensor<16xf32>) -> tensor<16xf32>
  return %1, %2 : tensor<16xf32>, tensor<16xf32>
}

// -----

// UNKNOWN
func.func @no_step(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-error @+1 {{plan-memory expects steps and constants; run lower-to-kernels first}}
  %0 = nn.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

// The whole way: softmax is written over the scores.
// MODEL
// MODEL: kernel.arena_bytes = array<i64: 0, 0, 0, [[BYTES:[0-9]+]], 0, 0>
// MODEL-SAME: kernel.arena_lower_bound = array<i64: 0, 0, 0, [[BYTES]], 0, 0>
// MODEL: kernel.matmul {{.*}}places = [#kernel.place<activations, [[SCORES:[0-9]+]]>]
// MODEL-NEXT: kernel.launch @{{.*}}places = [#kernel.place<activations, [[SCORES]]>]
// MODEL-NEXT: kernel.matmul
func.func @model(%q: tensor<32x8xf32>, %v: tensor<32x8xf32>) -> tensor<32x8xf32> {
  %0 = nn.matmul %q, %q {transpose_b} : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x32xf32>
  %1 = nn.softmax %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = nn.matmul %1, %v : (tensor<32x32xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
  return %2 : tensor<32x8xf32>
}
