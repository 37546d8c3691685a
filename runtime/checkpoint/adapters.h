// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters of a program as others have them: merged into the weights that they stand
// beside, or in files of the PEFT library.
#pragma once

#include "runtime/checkpoint/weight_files.h"
#include "runtime/program.h"

#include <string>
#include <vector>

namespace trainc {

// The type of a parameter's values with adapters: of 16 bits they would lose what was trained.
constexpr data_type type_of_merged(data_type of_weight) {
  return of_weight == data_type::f64 ? data_type::f64 : data_type::f32;
}
// Whether exports have others than the parameter: it has an adapter, or is integers with scales.
bool has_merged_values(const program &program, const std::string &parameter);
// Those values, in the weight's axes: W + (alpha / r) B A, whose sums are f64 in a fixed order.
// Empty where there are none.
std::vector<char> merged_values(const program &program, const arenas &arenas,
                                const std::string &parameter);

// Whether the parameter is a matrix of an adapter, which no file of the model alone has.
bool is_of_adapter(const program &program, const std::string &parameter);

constexpr char adapter_weights[] = "adapter_model.safetensors",
               adapter_configuration[] = "adapter_config.json";

// Writes these files into a folder, which is made. Throws `failure` (exit_disk).
void write_adapters(const program &program, const arenas &arenas, const std::string &folder);
// What training changes besides adapters, which these files do not hold.
std::vector<std::string> trained_beside_adapters(const program &program);

// The layers whose names in the module the file does not say.
std::vector<std::string> adapters_without_module(const program &program);

// Whether a file holds adapters alone. If so its names are those of the module then, without what
// PEFT puts before them.
bool take_adapter_names(weights &file);

// Throws `failure` (exit_checkpoint) with all by which the file's adapters are not the program's:
// names, shapes, and factors where the configuration beside it has them.
void check_adapters(const weights &file, const program &program);

} // namespace trainc
