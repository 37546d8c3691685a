// RUN: %trainc-opt %s --form-buckets | FileCheck %s
//
// Decaying parameters come first, then the others, then frozen ones; within a
// run in the order in which their gradients are complete, offsets padded to 16.

// CHECK-DAG: train.runs = array<i64: 32, 16, 32>
// CHECK-DAG: train.layout = [{count = 6 : i64, decay = true, frozen = false, name = "second", offset = 0 : i64}, {count = 15 : i64, decay = true, frozen = false, name = "first", offset = 16 : i64}, {count = 3 : i64, decay = false, frozen = false, name = "bias", offset = 32 : i64}, {count = 20 : i64, decay = false, frozen = true, name = "fixed", offset = 48 : i64}]

func.func @forward_backward(
    %first: tensor<5x3xf32> {train.kind = "parameter", train.name = "first", train.decay},
    %bias: tensor<3xf32> {train.kind = "parameter", train.name = "bias"},
    %second: tensor<3x2xf32> {train.kind = "parameter", train.name = "second", train.decay},
    %fixed: tensor<20xf32> {train.kind = "parameter", train.name = "fixed", train.frozen},
    %x: tensor<f32> {train.kind = "input", train.name = "x"})
    -> (tensor<f32> {train.kind = "loss", train.name = "loss"},
        tensor<5x3xf32> {train.kind = "gradient", train.name = "first"},
        tensor<3xf32> {train.kind = "gradient", train.name = "bias"},
        tensor<3x2xf32> {train.kind = "gradient", train.name = "second"}) {
  %0 = nn.exp %second : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %1 = nn.exp %bias : (tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.exp %first : (tensor<5x3xf32>) -> tensor<5x3xf32>
  return %x, %2, %1, %0 : tensor<f32>, tensor<5x3xf32>, tensor<3xf32>, tensor<3x2xf32>
}
