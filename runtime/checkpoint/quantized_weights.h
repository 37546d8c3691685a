// SPDX-License-Identifier: Apache-2.0
//
// Frozen weights that a program maps as integers with scales.
#pragma once

#include "runtime/program.h"

#include <string>
#include <vector>

namespace trainc {

// The form of a parameter that is such integers; null: it has another.
const quantized_weight *quantized_form(const program &program, const std::string &parameter);
// Whether the parameter is the scales or zero points of others.
bool is_part_of_quantized(const program &program, const std::string &parameter);

// Its elements as f32.
std::vector<char> dequantized_values(const program &program, const arenas &arenas,
                                     const quantized_weight &weight);

// Whether each element is at most a scale from the float at its place, as after rounding to the
// nearest integer.
bool is_rounded_from(const program &program, const arenas &arenas, const quantized_weight &weight,
                     const char *floats);

} // namespace trainc
