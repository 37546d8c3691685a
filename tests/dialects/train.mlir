// SPDX-License-Identifier: Apache-2.0
//
// RUN: %section ROUNDTRIP %s | %trainc-opt | %trainc-opt | %FileCheck %s --check-prefix=ROUNDTRIP
// RUN: %section ERRORS %s | %trainc-opt -split-input-file -verify-diagnostics -o /dev/null
//
// Roles are read, printed and checked: a misspelt or misplaced one is an error.

// ROUNDTRIP
// ROUNDTRIP: module attributes {train.layout = #train.layout<runs = [16, 0, 16, 0], parameters = [#train.placed<"val_\22115\22", decayed at 0, 3 elements>, #train.placed<"mean", buffer at 16, 2 elements>]>, train.model = "m"}
// ROUNDTRIP-LABEL: func.func @forward_backward
// ROUNDTRIP-SAME: {train.role = #train.parameter<"val_\22115\22", run = decayed, module = "h.1.weight">}
// ROUNDTRIP-SAME: {train.role = #train.parameter<"f", run = frozen>}
// ROUNDTRIP-SAME: {train.role = #train.buffer<"mean", module = "norm.running_mean">}
// ROUNDTRIP-SAME: {train.role = #train.input<"ids", index_bound = 7>}
// ROUNDTRIP-SAME: {train.role = #train.label<"labels", index_bound = 5, ignore_index = -100>}
// ROUNDTRIP-SAME: {train.role = #train.random_key}
// ROUNDTRIP-SAME: {train.role = #train.loss}, {{.*}} {train.role = #train.output<"y">}
// ROUNDTRIP-SAME: {train.role = #train.gradient<"val_\22115\22">}
// ROUNDTRIP-SAME: {train.role = #train.new_value<"mean">}
module attributes {train.model = "m", train.layout = #train.layout<runs = [16, 0, 16, 0], parameters = [
    #train.placed<"val_\22115\22", decayed at 0, 3 elements>, #train.placed<"mean", buffer at 16, 2 elements>]>} {
  func.func @forward_backward(
      %w: tensor<3xf32> {train.role = #train.parameter<"val_\22115\22", run = decayed, module = "h.1.weight">},
      %f: tensor<3xf32> {train.role = #train.parameter<"f", run = frozen>},
      %mean: tensor<2xf32> {train.role = #train.buffer<"mean", module = "norm.running_mean">},
      %ids: tensor<4xi64> {train.role = #train.input<"ids", index_bound = 7>},
      %labels: tensor<4xi64> {train.role = #train.label<"labels", index_bound = 5, ignore_index = -100>},
      %key: tensor<i64> {train.role = #train.random_key},
      %loss: tensor<f32>)
      -> (tensor<f32> {train.role = #train.loss}, tensor<3xf32> {train.role = #train.output<"y">},
          tensor<3xf32> {train.role = #train.gradient<"val_\22115\22">},
          tensor<2xf32> {train.role = #train.new_value<"mean">}) {
    return %loss, %f, %w, %mean : tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>
  }
  // ROUNDTRIP-LABEL: func.func @update
  // ROUNDTRIP-SAME: {train.role = #train.run_parameters<decayed>}
  // ROUNDTRIP-SAME: {train.role = #train.run_gradients<decayed>}
  // ROUNDTRIP-SAME: {train.role = #train.state<decayed, slot = 1>}
  // ROUNDTRIP-SAME: {train.role = #train.scalar<"step">}
  // ROUNDTRIP-SAME: {train.role = #train.gradient_norm}, {{.*}} {train.role = #train.run_parameters<decayed>}
  func.func @update(%p: tensor<16xf32> {train.role = #train.run_parameters<decayed>},
                    %g: tensor<16xf32> {train.role = #train.run_gradients<decayed>},
                    %s: tensor<16xf32> {train.role = #train.state<decayed, slot = 1>},
                    %step: tensor<f64> {train.role = #train.scalar<"step">})
      -> (tensor<f64> {train.role = #train.gradient_norm},
          tensor<16xf32> {train.role = #train.run_parameters<decayed>}) {
    return %step, %p : tensor<f64>, tensor<16xf32>
  }
}

// -----

// ERRORS
// expected-error@+1 {{has an attribute 'train.roll' on an argument, which means nothing there}}
func.func @misspelt(%w: tensor<3xf32> {train.roll = #train.parameter<"w">}) { return }

// -----

// ERRORS
// expected-error@+1 {{unknown attribute `paramter` in dialect `train`}}
func.func @misspelt_role(%w: tensor<3xf32> {train.role = #train.paramter<"w">}) { return }

// -----

// ERRORS
// expected-error@+1 {{expects the role of an argument, found "parameter"}}
func.func @text(%w: tensor<3xf32> {train.role = "parameter"}) { return }

// -----

// ERRORS
// expected-error@+1 {{expects the role of an argument, found #train.gradient<"w">}}
func.func @misplaced(%w: tensor<3xf32> {train.role = #train.gradient<"w">}) { return }

// -----

// ERRORS
// expected-error@+1 {{expects the role of a result, found #train.input<"x">}}
func.func @misplaced(%x: tensor<3xf32>) -> (tensor<3xf32> {train.role = #train.input<"x">}) {
  return %x : tensor<3xf32>
}

// -----

// ERRORS
// expected-error@+1 {{has an attribute 'train.role' of its own, which means nothing there}}
func.func @own() attributes {train.role = #train.loss} { return }

// -----

// ERRORS
// expected-error@+1 {{has an attribute 'train.lay_out' of its own, which means nothing there}}
module attributes {train.lay_out = "m"} {}

// -----

// ERRORS
// expected-error@+1 {{expects a #train.layout for 'train.layout', found "m"}}
module attributes {train.layout = "m"} {}

// -----

// ERRORS
// expected-error@+1 {{expects the sizes of 4 runs, found 3}}
module attributes {train.layout = #train.layout<runs = [16, 16, 16], parameters = []>} {}

// -----

// ERRORS
// expected-error@+1 {{#train.placed<"w", undecayed at 0, 3 elements> is outside its run, [16, 32)}}
module attributes {train.layout = #train.layout<runs = [16, 16, 0, 0], parameters = [#train.placed<"w", undecayed at 0, 3 elements>]>} {}

// -----

// ERRORS
// expected-error@+1 {{#train.placed<"w", decayed at 0, 3 elements, group = 1> is in none of 0 groups}}
module attributes {train.layout = #train.layout<runs = [16, 0, 0, 0], parameters = [#train.placed<"w", decayed at 0, 3 elements, group = 1>]>} {}

// -----

// ERRORS
// expected-error@+1 {{has names of 0 groups of parameters and a layout of 1}}
module attributes {train.layout = #train.layout<runs = [16, 0, 0, 0, 0, 0], parameters = []>} {}

// -----

// ERRORS
// expected-error@+1 {{expects a list of names for 'train.groups', found "norms"}}
module attributes {train.groups = "norms"} {}

// -----

// ERRORS
// expected-error@+1 {{a group, from 1, is of trained parameters; found 1 of frozen ones}}
func.func @frozen(%w: tensor<3xf32> {train.role = #train.parameter<"w", run = frozen, group = 1>}) { return }

// -----

// ERRORS
// expected-error@+1 {{a parameter is in the run decayed, undecayed or frozen}}
func.func @replaced(%w: tensor<3xf32> {train.role = #train.parameter<"w", run = buffer>}) { return }

// -----

// ERRORS
// expected-error@+1 {{expects a tensor of floats for #train.buffer<"count">, found 'tensor<i64>'}}
func.func @integers(%count: tensor<i64> {train.role = #train.buffer<"count">}) { return }

// -----

// ERRORS
// expected-error@+1 {{expects a scalar for #train.scalar<"step">, found 'tensor<2xf64>'}}
func.func @vector(%step: tensor<2xf64> {train.role = #train.scalar<"step">}) { return }

// -----

// ERRORS
// expected-error@+1 {{has two arguments called "w"}}
func.func @twice(%w: tensor<3xf32> {train.role = #train.parameter<"w">},
                 %x: tensor<3xf32> {train.role = #train.input<"w">}) { return }

// -----

// ERRORS
// expected-error@+1 {{has a result #train.gradient<"v"> of type 'tensor<3xf32>', but no trained parameter of that name and type}}
func.func @other(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<3xf32> {train.role = #train.gradient<"v">}) { return %w : tensor<3xf32> }

// -----

// ERRORS
// expected-error@+1 {{but no trained parameter of that name and type}}
func.func @frozen(%w: tensor<3xf32> {train.role = #train.parameter<"w", run = frozen>})
    -> (tensor<3xf32> {train.role = #train.gradient<"w">}) { return %w : tensor<3xf32> }

// -----

// ERRORS
// expected-error@+1 {{has a result #train.new_value<"w"> of type 'tensor<3xf32>', but no buffer of that name and type}}
func.func @no_buffer(%w: tensor<3xf32> {train.role = #train.parameter<"w">})
    -> (tensor<3xf32> {train.role = #train.new_value<"w">}) { return %w : tensor<3xf32> }

// -----

// ERRORS
// expected-error@+1 {{has a result #train.state<decayed, slot = 0> without an argument of that role}}
func.func @update(%s: tensor<16xf32> {train.role = #train.state<decayed, slot = 1>})
    -> (tensor<16xf32> {train.role = #train.state<decayed, slot = 0>}) { return %s : tensor<16xf32> }

// -----

// ERRORS
// expected-error@+1 {{expects 'tensor<i64>' for #train.random_key, found 'tensor<i32>'}}
func.func @random_key_type(%key: tensor<i32> {train.role = #train.random_key}) { return }

// -----

// ERRORS
// expected-error@+1 {{expects a scalar for #train.random_key, found 'tensor<2xi64>'}}
func.func @random_keys(%key: tensor<2xi64> {train.role = #train.random_key}) { return }
