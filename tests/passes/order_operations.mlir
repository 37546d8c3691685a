// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section EARLY %s | %trainc-opt -order-operations | %FileCheck %s --check-prefix=EARLY
// RUN: %section OVERWRITE %s | %trainc-opt -order-operations | %FileCheck %s --check-prefix=OVERWRITE
// RUN: %section PROGRAM %s | %trainc-opt -order-operations | %FileCheck %s --check-prefix=PROGRAM
// RUN: %section COMMUNICATION %s | %trainc-opt -order-operations | %FileCheck %s --check-prefix=COMMUNICATION

// The first gradient runs before the second large tensor is made: one of them is alive, not two.
// EARLY
// EARLY-LABEL: func.func @early
// EARLY: %[[A:.*]] = kernel.launch @a
// EARLY-NEXT: kernel.launch @gradient(%[[A]])
// EARLY-NEXT: %[[B:.*]] = kernel.launch @b
// EARLY-NEXT: kernel.launch @gradient(%[[B]])
func.func @early(%x: tensor<64x64xf32>, %u: tensor<16xf32> {train.role = #train.parameter<"u">}, %v: tensor<16xf32> {train.role = #train.parameter<"v">})
    -> (tensor<16xf32> {train.role = #train.gradient<"u">}, tensor<16xf32> {train.role = #train.gradient<"v">}) {
  %0 = kernel.launch @a(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = kernel.launch @b(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = kernel.launch @gradient(%0) : (tensor<64x64xf32>) -> tensor<16xf32>
  %3 = kernel.launch @gradient(%1) : (tensor<64x64xf32>) -> tensor<16xf32>
  return %2, %3 : tensor<16xf32>, tensor<16xf32>
}

// -----

// Parameters are overwritten after everything that reads their old value.
// OVERWRITE
// OVERWRITE-LABEL: func.func @update
// OVERWRITE: kernel.launch @norm(%arg0)
// OVERWRITE-NEXT: kernel.launch @step(%arg0, %arg1)
func.func @update(%p: tensor<16xf32> {train.role = #train.run_parameters<decayed>},
                  %g: tensor<16xf32> {train.role = #train.run_gradients<decayed>})
    -> (tensor<f64> {train.role = #train.gradient_norm}, tensor<16xf32> {train.role = #train.run_parameters<decayed>}) {
  %0 = kernel.launch @step(%p, %g) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %1 = kernel.launch @norm(%p) : (tensor<16xf32>) -> tensor<f64>
  return %1, %0 : tensor<f64>, tensor<16xf32>
}

// -----

// Where nothing is won the program's order stays.
// PROGRAM
// PROGRAM-LABEL: func.func @program
// PROGRAM: kernel.launch @a
// PROGRAM-NEXT: kernel.launch @b
// PROGRAM-NEXT: kernel.launch @c
func.func @program(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = kernel.launch @a(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = kernel.launch @b(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = kernel.launch @c(%0, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Sending frees memory at once, but what is ordered keeps its order: the peer receives in that order.
// COMMUNICATION
// COMMUNICATION-LABEL: func.func @communication
// COMMUNICATION: kernel.call "receive"
// COMMUNICATION: kernel.call "send" of "communication" [1]
// COMMUNICATION: kernel.call "send" of "communication" [2]
func.func @communication(%x: tensor<8x8xf32>) -> tensor<f32> {
  %a = kernel.launch @a(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = kernel.call "receive" of "communication" [0] () {ordered} : () -> tensor<8xf32>
  %b = kernel.launch @b(%a, %r) : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %c = kernel.launch @c(%b) : (tensor<8x8xf32>) -> tensor<f32>
  kernel.call "send" of "communication" [1] (%b) {ordered} : (tensor<8x8xf32>) -> ()
  kernel.call "send" of "communication" [2] (%a) {ordered} : (tensor<8x8xf32>) -> ()
  return %c : tensor<f32>
}
