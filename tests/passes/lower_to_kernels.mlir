// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section SHARED %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=SHARED
// RUN: %section ROW %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=ROW
// RUN: %section COLUMN %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=COLUMN
// RUN: %section VIEWS %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=VIEWS
// RUN: %section PADS %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=PADS
// RUN: %section CONCAT %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=CONCAT
// RUN: %section GATHER %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=GATHER
// RUN: %section TYPES %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=TYPES
// RUN: %section KEPT %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=KEPT
// RUN: %section FULL %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=FULL
// RUN: %section DIVIDE %s | %trainc-opt -lower-to-kernels | %FileCheck %s --check-prefix=DIVIDE

// Equal layers share a kernel, named after what their nodes have in common; dimensions merge.
// SHARED
// SHARED: kernel.function @h_mlp_act pointwise dims [64] reduced 0 outputs 1
// SHARED-SAME: sources ["h.0.mlp.act"]
// SHARED: arith.constant 7.812500e-01 : f32
// SHARED-NOT: kernel.function
// SHARED: kernel.launch @h_mlp_act(%arg0) {result_names = ["h.0.mlp.act"]}
// SHARED: kernel.launch @h_mlp_act(%{{.*}}) {result_names = ["h.1.mlp.act"]}
func.func @shared(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = kernel.group pointwise {
    %c = nn.constant dense<0.78125> : tensor<8x8xf32>
    %1 = nn.mul %x, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = nn.tanh %1 : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("h.0.mlp.act")
    kernel.yield %2 : tensor<8x8xf32>
  } : tensor<8x8xf32> loc("h.0.mlp.act")
  %3 = kernel.group pointwise {
    %c = nn.constant dense<0.78125> : tensor<8x8xf32>
    %4 = nn.mul %0, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = nn.tanh %4 : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("h.1.mlp.act")
    kernel.yield %5 : tensor<8x8xf32>
  } : tensor<8x8xf32> loc("h.1.mlp.act")
  return %3 : tensor<8x8xf32>
}

// -----

// Softmax: a loop per depth of reductions, rows' scalars between, one map at the end.
// ROW
// ROW: kernel.function @scores_softmax_gradient row dims [24, 16] reduced 1 outputs 2
// ROW-SAME: #kernel.access<[16, 1], 0>, #kernel.access<[1, 0], 0>, #kernel.access<[16, 1], 0>
// ROW-NEXT: ^bb0(%[[X:.*]]: !kernel.buffer<f32>, %[[LARGEST:.*]]: !kernel.buffer<f32>, %[[Y:.*]]: !kernel.buffer<f32>):
// ROW-NEXT: %[[MAX:.*]] = kernel.reduce [#kernel<reduction max>] {
// ROW: %[[SUM:.*]] = kernel.reduce [#kernel<reduction add>] {
// ROW-NEXT: kernel.load %[[X]]
// ROW-NEXT: arith.subf %{{.*}}, %[[MAX]]
// ROW-NEXT: math.exp
// ROW: }
// ROW-NEXT: kernel.store %[[MAX]], %[[LARGEST]]
// ROW-NEXT: kernel.map {
// ROW: arith.divf %{{.*}}, %[[SUM]]
// ROW-NEXT: kernel.store %{{.*}}, %[[Y]]
func.func @row(%x: tensor<4x6x16xf32>) -> (tensor<4x6x16xf32>, tensor<4x6xf32>) {
  %0:2 = kernel.group row {
    %1 = nn.reduce_max %x {dimensions = array<i64: 2>} : (tensor<4x6x16xf32>) -> tensor<4x6xf32>
    %2 = nn.broadcast %1 {dimensions = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<4x6x16xf32>
    %3 = nn.sub %x, %2 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    %4 = nn.exp %3 : (tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    %5 = nn.reduce_sum %4 {dimensions = array<i64: 2>} : (tensor<4x6x16xf32>) -> tensor<4x6xf32>
    %6 = nn.broadcast %5 {dimensions = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<4x6x16xf32>
    %7 = nn.div %4, %6 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    kernel.yield %1, %7 : tensor<4x6xf32>, tensor<4x6x16xf32>
  } : tensor<4x6xf32>, tensor<4x6x16xf32> loc("gradient"("scores/Softmax"))
  return %0#1, %0#0 : tensor<4x6x16xf32>, tensor<4x6xf32>
}

// -----

// Sums over leading dimensions walk them first; a middle dimension is walked where it lies.
// COLUMN
// COLUMN: kernel.function @{{.*}} column dims [24, 16] reduced 1 outputs 1
// COLUMN-SAME: accesses [#kernel.access<[16, 1], 0>, #kernel.access<[0, 1], 0>]
// COLUMN: kernel.function @{{.*}} column dims [6, 4, 16] reduced 1 outputs 1
// COLUMN-SAME: accesses [#kernel.access<[16, 96, 1], 0>, #kernel.access<[0, 16, 1], 0>]
func.func @column(%x: tensor<4x6x16xf32>) -> (tensor<16xf32>, tensor<4x16xf32>) {
  %0 = kernel.group column {
    %1 = nn.reduce_sum %x {dimensions = array<i64: 0, 1>} : (tensor<4x6x16xf32>) -> tensor<16xf32>
    kernel.yield %1 : tensor<16xf32>
  } : tensor<16xf32>
  %2 = kernel.group column {
    %3 = nn.reduce_sum %x {dimensions = array<i64: 1>} : (tensor<4x6x16xf32>) -> tensor<4x16xf32>
    kernel.yield %3 : tensor<4x16xf32>
  } : tensor<4x16xf32>
  return %0, %2 : tensor<16xf32>, tensor<4x16xf32>
}

// -----

// Views are strides and offsets.
// VIEWS
// VIEWS: kernel.function @{{.*}} pointwise dims [4, 3] reduced 0 outputs 1
// VIEWS-SAME: accesses [#kernel.access<[-1, 12], 9>, #kernel.access<[0, 1], 0>, #kernel.access<[3, 1], 0>]
func.func @views(%x: tensor<3x12xf32>, %bias: tensor<3xf32>) -> tensor<2x6xf32> {
  %0 = kernel.group pointwise {
    %1 = nn.slice %x {starts = array<i64: 0, 6>, sizes = array<i64: 3, 4>, strides = array<i64: 1, 1>} : (tensor<3x12xf32>) -> tensor<3x4xf32>
    %2 = nn.reverse %1 {dimensions = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %3 = nn.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %4 = nn.broadcast %bias {dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
    %5 = nn.add %3, %4 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %6 = nn.reshape %5 : (tensor<4x3xf32>) -> tensor<2x6xf32>
    kernel.yield %6 : tensor<2x6xf32>
  } : tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

// Padded tensors are read where they are; a function of a padded one is 0 outside only if selected.
// PADS
// PADS: kernel.function @{{.*}} pointwise dims [6] reduced 0 outputs 1
// PADS-SAME: #kernel.access<[1], 0>, #kernel.access<[1], -3>, #kernel.access<[1], 0>
// PADS: %[[FRONT:.*]] = arith.cmpi slt
// PADS: kernel.load %arg0 if %[[FRONT]]
// PADS: %[[BACK:.*]] = arith.cmpi sge
// PADS: %[[LOADED:.*]] = kernel.load %arg1 if %[[BACK]]
// PADS: %[[EXP:.*]] = math.exp %[[LOADED]]
// PADS: arith.select %[[BACK]], %[[EXP]]
func.func @pads(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<6xf32> {
  %0 = kernel.group pointwise {
    %1 = nn.pad %x {low = array<i64: 0>, high = array<i64: 3>, interior = array<i64: 0>} : (tensor<3xf32>) -> tensor<6xf32>
    %2 = nn.exp %y : (tensor<3xf32>) -> tensor<3xf32>
    %3 = nn.pad %2 {low = array<i64: 3>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<3xf32>) -> tensor<6xf32>
    %4 = nn.add %1, %3 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    kernel.yield %4 : tensor<6xf32>
  } : tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// CONCAT
// CONCAT: kernel.function @{{.*}} pointwise dims [4, 5]
// CONCAT-SAME: #kernel.access<[3, 1], -2>, #kernel.access<[2, 1], 0>, #kernel.access<[5, 1], 0>
// CONCAT: %[[SECOND:.*]] = kernel.load %arg0 if
// CONCAT: %[[FIRST:.*]] = kernel.load %arg1 if
// CONCAT: arith.select %{{.*}}, %[[FIRST]], %[[SECOND]]
func.func @concat(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) -> tensor<4x5xf32> {
  %0 = kernel.group pointwise {
    %1 = nn.concat %x, %y {dimension = 1 : i64} : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
    kernel.yield %1 : tensor<4x5xf32>
  } : tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

// An embedding is an indexed load; the index is read once per row.
// GATHER
// GATHER: kernel.function @{{.*}} pointwise dims [6, 8]
// GATHER-SAME: #kernel.access<[1, 0], 0>, #kernel.access<[0, 1], 0>, #kernel.access<[8, 1], 0>
// GATHER: %[[ID:.*]] = kernel.load %arg0 : <i64> -> i64
// GATHER: kernel.load %arg1 at %[[ID]] : i64 {index_stride = 8 : i64}
func.func @gather(%table: tensor<100x8xf32>, %ids: tensor<2x3xi64>) -> tensor<2x3x8xf32> {
  %0 = kernel.group pointwise {
    %1 = nn.gather %table, %ids : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
    kernel.yield %1 : tensor<2x3x8xf32>
  } : tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// -----

// i32 is i64 in registers, records with a value expression are written out.
// TYPES
// TYPES: kernel.load %arg0 : <i32> -> i32
// TYPES-NEXT: arith.extsi {{.*}} : i32 to i64
// TYPES: arith.cmpi sgt, {{.*}} : i64
// TYPES: arith.trunci {{.*}} : i64 to i32
// TYPES: math.sqrt
// TYPES-NEXT: arith.divf
func.func @types(%n: tensor<4xi32>, %x: tensor<4xf64>) -> (tensor<4xi32>, tensor<4xf64>) {
  %0:2 = kernel.group pointwise {
    %1 = nn.sign %n : (tensor<4xi32>) -> tensor<4xi32>
    %2 = nn.rsqrt %x : (tensor<4xf64>) -> tensor<4xf64>
    kernel.yield %1, %2 : tensor<4xi32>, tensor<4xf64>
  } : tensor<4xi32>, tensor<4xf64>
  return %0#0, %0#1 : tensor<4xi32>, tensor<4xf64>
}

// -----

// What a reduction's loop computes and somebody else reads is stored in it, once; what needs a
// reduction's result, in a loop of its own.
// KEPT
// KEPT: kernel.function @{{.*}} column dims [6, 4, 16] reduced 1 outputs 3
// KEPT-SAME: accesses [#kernel.access<[16, 96, 1], 0>, #kernel.access<[16, 96, 1], 0>, #kernel.access<[0, 16, 1], 0>, #kernel.access<[16, 96, 1], 0>]
// KEPT: %[[SUM:.*]] = kernel.reduce [#kernel<reduction add>] {
// KEPT: %[[SQUARE:.*]] = arith.mulf
// KEPT-NEXT: kernel.store %[[SQUARE]], %arg1
// KEPT-NEXT: kernel.yield %[[SQUARE]]
// KEPT: kernel.store %[[SUM]], %arg2
// KEPT: kernel.map {
// KEPT: %[[LOADED:.*]] = kernel.load %arg0
// KEPT-NEXT: %[[SHARE:.*]] = arith.divf %[[LOADED]], %[[SUM]]
// KEPT-NEXT: kernel.store %[[SHARE]], %arg3
// KEPT: kernel.function @{{.*}} full dims [384] reduced 1 outputs 2
// KEPT: kernel.reduce
// KEPT: kernel.store
// KEPT: kernel.yield
// KEPT-NOT: kernel.map
func.func @kept(%x: tensor<4x6x16xf32>)
    -> (tensor<4x6x16xf32>, tensor<4x16xf32>, tensor<4x6x16xf32>, tensor<384xf32>, tensor<f32>) {
  %0:3 = kernel.group column {
    %1 = nn.mul %x, %x : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    %2 = nn.reduce_sum %1 {dimensions = array<i64: 1>} : (tensor<4x6x16xf32>) -> tensor<4x16xf32>
    %3 = nn.broadcast %2 {dimensions = array<i64: 0, 2>} : (tensor<4x16xf32>) -> tensor<4x6x16xf32>
    %4 = nn.div %x, %3 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    kernel.yield %1, %2, %4 : tensor<4x6x16xf32>, tensor<4x16xf32>, tensor<4x6x16xf32>
  } : tensor<4x6x16xf32>, tensor<4x16xf32>, tensor<4x6x16xf32>
  %5:2 = kernel.group full {
    %1 = nn.mul %x, %x : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    %2 = nn.reduce_sum %1 {dimensions = array<i64: 0, 1, 2>} : (tensor<4x6x16xf32>) -> tensor<f32>
    %3 = nn.reshape %1 : (tensor<4x6x16xf32>) -> tensor<384xf32>
    kernel.yield %3, %2 : tensor<384xf32>, tensor<f32>
  } : tensor<384xf32>, tensor<f32>
  return %0#0, %0#1, %0#2, %5#0, %5#1
      : tensor<4x6x16xf32>, tensor<4x16xf32>, tensor<4x6x16xf32>, tensor<384xf32>, tensor<f32>
}

// -----

// Scalars of a full reduction come after its loop.
// FULL
// FULL: kernel.function @{{.*}} full dims [32] reduced 1 outputs 1
// FULL: %[[SUM:.*]] = kernel.reduce [#kernel<reduction add>] {
// FULL: }
// FULL-NEXT: %[[NORM:.*]] = math.sqrt %[[SUM]]
// FULL-NEXT: kernel.store %[[NORM]], %arg1
func.func @full(%x: tensor<4x8xf32>) -> tensor<f32> {
  %0 = kernel.group full {
    %1 = nn.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = nn.reduce_sum %1 {dimensions = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
    %3 = nn.sqrt %2 : (tensor<f32>) -> tensor<f32>
    kernel.yield %3 : tensor<f32>
  } : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A reshape that cuts across a transpose has no strides: the index is divided.
// DIVIDE
// DIVIDE: arith.divsi
// DIVIDE: arith.remsi
// DIVIDE: kernel.load %arg0 at
func.func @divide(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = kernel.group pointwise {
    %1 = nn.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %2 = nn.reshape %1 : (tensor<4x3xf32>) -> tensor<3x4xf32>
    kernel.yield %2 : tensor<3x4xf32>
  } : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
