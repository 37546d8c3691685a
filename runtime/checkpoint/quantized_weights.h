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

// Whether it is what these floats are rounded to; or, of integers that the model's file has,
// whether they stand for these floats.
bool has_floats_of(const program &program, const arenas &arenas, const quantized_weight &weight,
                   const char *floats);

} // namespace trainc
