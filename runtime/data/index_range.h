// SPDX-License-Identifier: Apache-2.0
//
// Which integers an input may hold that index a table.
#pragma once

#include "runtime/program.h"

#include <cstdint>
#include <string>

namespace trainc {

// The number of the first of these values, of the input's type, that is not an index of it;
// `count`: there is none.
int64_t first_outside(const input_place &input, const void *values, int64_t count);

// "value 70 at element 3 is outside [0, 65)"; `place` says more of where it is.
std::string outside_text(const input_place &input, const void *values, int64_t number,
                         const std::string &place);

} // namespace trainc
