// SPDX-License-Identifier: Apache-2.0
//
// One to three dimensions of space, which convolutions and pools slide their windows over.
#pragma once

#include <cstdint>

namespace trainc {

constexpr int max_space = 3; // dimensions of space

// Numbers of the dimensions of space, always three: the missing ones are in front.
struct space_sizes {
  int64_t of[max_space];
  constexpr int64_t count() const { return of[0] * of[1] * of[2]; }
};

} // namespace trainc
