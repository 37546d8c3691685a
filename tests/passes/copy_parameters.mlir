// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section COPIES %s | %trainc-opt --copy-parameters | %FileCheck %s --check-prefix=COPIES
// RUN: %section COPIES %s | %trainc-opt --copy-parameters --fuse --lower-to-kernels --order-operations --plan-memory | %FileCheck %s --check-prefix=PLACES
// RUN: %section NONE %s | %trainc-opt --copy-parameters | %FileCheck %s --check-prefix=NONE
// RUN: %section EARLY %s | not %trainc-opt --copy-parameters 2>&1 | %FileCheck %s --check-prefix=EARLY

// COPIES
// Both casts of a parameter are one argument; the frozen one has a copy that only @round_parameters makes. What nothing
// rounds to 16 bits, and what is rounded to another type than its run's copy, stays as it is.
// COPIES: func.func @forward_backward(
// COPIES-SAME: %arg4: tensor<4x4xbf16> {train.role = #train.parameter_copy<"w", title = "w.bf16">}
// COPIES-SAME: %arg5: tensor<4xbf16> {train.role = #train.parameter_copy<"fixed", title = "lora.base.bf16">}
// COPIES-NOT: nn.cast %arg0
// COPIES: nn.cast %arg1 : (tensor<4xf32>) -> tensor<4xf64>
// COPIES: nn.cast %arg2 : (tensor<4x4xf32>) -> tensor<4x4xf16>
// COPIES-NOT: nn.cast
// COPIES: return
// COPIES: func.func @evaluate(
// COPIES-SAME: %arg2: tensor<4x4xbf16> {train.role = #train.parameter_copy<"w", title = "w.bf16">}
// COPIES-NOT: nn.cast %arg0
// COPIES: nn.cast %arg1 : (tensor<4xf32>) -> tensor<4xf64>
// COPIES: return
// COPIES: func.func @update(
// COPIES-SAME: tensor<32xbf16> {train.role = #train.run_copies<decayed>}
// COPIES: %[[NEW:.*]] = nn.sub
// COPIES: %[[COPY:.*]] = nn.cast %[[NEW]] : (tensor<32xf32>) -> tensor<32xbf16>
// COPIES: return %[[NEW]], %[[COPY]]
// COPIES: func.func @round_parameters(
// COPIES-SAME: %arg0: tensor<32xf32> {train.role = #train.run_parameters<decayed>}, %arg1: tensor<16xf32> {train.role = #train.run_parameters<frozen>}
// COPIES-SAME: tensor<32xbf16> {train.role = #train.run_copies<decayed>}, tensor<16xbf16> {train.role = #train.run_copies<frozen>}
// COPIES: nn.cast %arg0
// COPIES: nn.cast %arg1

// After 64 numbers of 4 bytes: 32 and 16 of 2; one kernel makes parameters and their copies.
// PLACES: module attributes {kernel.arena_bytes = array<i64: 384, 
// PLACES: #kernel.place<parameters, 256>, train.role = #train.parameter_copy<"w", title = "w.bf16">
// PLACES: func.func @update(
// PLACES-SAME: #kernel.place<parameters, 256>, train.role = #train.run_copies<decayed>
// PLACES-COUNT-1: kernel.launch
// PLACES: return
// PLACES: func.func @round_parameters(
// PLACES-SAME: #kernel.place<parameters, 320>, train.role = #train.run_copies<frozen>
module attributes {train.layout = #train.layout<runs = [32, 16, 0, 16], parameters = [#train.placed<"w", decayed at 0, 16 elements>, #train.placed<"v", decayed at 16, 16 elements>, #train.placed<"b", undecayed at 32, 4 elements>, #train.placed<"fixed", frozen at 48, 4 elements>]>} {
  func.func @forward_backward(
      %w: tensor<4x4xf32> {train.role = #train.parameter<"w", run = decayed>},
      %b: tensor<4xf32> {train.role = #train.parameter<"b">},
      %v: tensor<4x4xf32> {train.role = #train.parameter<"v", run = decayed>},
      %fixed: tensor<4xf32> {train.role = #train.parameter<"fixed", run = frozen, module = "lora.base">})
      -> (tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4xf64>, tensor<4x4xf16>, tensor<4xbf16>) {
    %0 = nn.cast %w : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %1 = nn.exp %0 : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
    %2 = nn.cast %w : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %3 = nn.sqrt %2 : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
    %4 = nn.cast %b : (tensor<4xf32>) -> tensor<4xf64>
    %5 = nn.cast %v : (tensor<4x4xf32>) -> tensor<4x4xf16>
    %6 = nn.cast %fixed : (tensor<4xf32>) -> tensor<4xbf16>
    %7 = nn.exp %6 : (tensor<4xbf16>) -> tensor<4xbf16>
    return %1, %3, %4, %5, %7 : tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4xf64>, tensor<4x4xf16>, tensor<4xbf16>
  }
  func.func @evaluate(
      %w: tensor<4x4xf32> {train.role = #train.parameter<"w", run = decayed>},
      %b: tensor<4xf32> {train.role = #train.parameter<"b">}) -> (tensor<4x4xbf16>, tensor<4xf64>) {
    %0 = nn.cast %w : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %1 = nn.exp %0 : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
    %2 = nn.cast %b : (tensor<4xf32>) -> tensor<4xf64>
    return %1, %2 : tensor<4x4xbf16>, tensor<4xf64>
  }
  func.func @update(
      %parameters: tensor<32xf32> {train.role = #train.run_parameters<decayed>},
      %gradients: tensor<32xf32> {train.role = #train.run_gradients<decayed>})
      -> (tensor<32xf32> {train.role = #train.run_parameters<decayed>}) {
    %0 = nn.sub %parameters, %gradients : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
}

// -----

// NONE
// NONE: func.func @update(
// NONE-NOT: bf16
// NONE-NOT: @round_parameters
module attributes {train.layout = #train.layout<runs = [16, 0, 0, 0], parameters = [#train.placed<"w", decayed at 0, 4 elements>]>} {
  func.func @forward_backward(%w: tensor<4xf32> {train.role = #train.parameter<"w", run = decayed>}) -> tensor<4xf32> {
    return %w : tensor<4xf32>
  }
  func.func @update(%parameters: tensor<16xf32> {train.role = #train.run_parameters<decayed>})
      -> (tensor<16xf32> {train.role = #train.run_parameters<decayed>}) {
    return %parameters : tensor<16xf32>
  }
}

// -----

// EARLY
// EARLY: copy-parameters expects @forward_backward, @update and a layout; run attach-optimizer first
func.func @model(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
