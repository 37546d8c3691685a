// SPDX-License-Identifier: Apache-2.0
//
// A batch for measurements: values that any model takes, where nobody has data.
#pragma once

#include "runtime/program.h"

#include <cstdint>

namespace trainc {

// Writes the values of an input to `values`: indexes within their bound, numbers in [0, 1), other
// integers and truth values 1, which a mask takes for "counts".
void make_up(const input_place &input, uint64_t seed, char *values);

} // namespace trainc
