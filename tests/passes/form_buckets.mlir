// RUN: %trainc-opt %s --form-buckets | FileCheck %s
// RUN: sed -e '1i module attributes {train.groups = ["a", "b"]} {' -e '$a }' -e 's/parameter<"bias">/parameter<"bias", group = 2>/; s/"first", run = decayed>/"first", run = decayed, group = 1>/' %s | %trainc-opt --form-buckets | FileCheck %s --check-prefix=GROUPS
// RUN: sed -e 's/parameter<"bias">/parameter<"bias", group = 2>/' %s | not %trainc-opt --form-buckets 2>&1 | FileCheck %s --check-prefix=UNNAMED
//
// Decaying parameters come first, then the others, buffers, frozen ones; within a
// run in the order in which their gradients are complete, offsets padded to 16.

// CHECK: train.layout = #train.layout<runs = [32, 16, 16, 32], parameters = [#train.placed<"second", decayed at 0, 6 elements>, #train.placed<"first", decayed at 16, 15 elements>, #train.placed<"bias", undecayed at 32, 3 elements>, #train.placed<"mean", buffer at 48, 4 elements>, #train.placed<"fixed", frozen at 64, 20 elements>]>

// What is in no group lies first, then each group: a has nothing that does not decay, b nothing that does.
// GROUPS: train.layout = #train.layout<runs = [16, 0, 16, 0, 0, 16, 16, 32], parameters = [#train.placed<"second", decayed at 0, 6 elements>, #train.placed<"first", decayed at 16, 15 elements, group = 1>, #train.placed<"bias", undecayed at 32, 3 elements, group = 2>, #train.placed<"mean", buffer at 48, 4 elements>, #train.placed<"fixed", frozen at 64, 20 elements>]>
// UNNAMED: form-buckets: the parameter "bias" is in group 2, of 0 that have names

func.func @forward_backward(
    %first: tensor<5x3xf32> {train.role = #train.parameter<"first", run = decayed>},
    %bias: tensor<3xf32> {train.role = #train.parameter<"bias">},
    %second: tensor<3x2xf32> {train.role = #train.parameter<"second", run = decayed>},
    %fixed: tensor<20xf32> {train.role = #train.parameter<"fixed", run = frozen>},
    %mean: tensor<4xf32> {train.role = #train.buffer<"mean">},
    %x: tensor<f32> {train.role = #train.input<"x">})
    -> (tensor<f32> {train.role = #train.loss},
        tensor<5x3xf32> {train.role = #train.gradient<"first">},
        tensor<3xf32> {train.role = #train.gradient<"bias">},
        tensor<3x2xf32> {train.role = #train.gradient<"second">},
        tensor<4xf32> {train.role = #train.new_value<"mean">}) {
  %0 = nn.exp %second : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %1 = nn.exp %bias : (tensor<3xf32>) -> tensor<3xf32>
  %2 = nn.exp %first : (tensor<5x3xf32>) -> tensor<5x3xf32>
  return %x, %2, %1, %0, %mean : tensor<f32>, tensor<5x3xf32>, tensor<3xf32>, tensor<3x2xf32>, tensor<4xf32>
}
