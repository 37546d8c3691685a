// SPDX-License-Identifier: Apache-2.0
//
// What the machine reaches in a large matrix product, for comparison with what a step reaches.
#pragma once

#include <cstdint>

namespace trainc {

// Floating-point operations per second of the fastest of a few large f32 products with the threads
// of OpenMP, in about 50 ms. The matrices lie in `memory`, 64-byte aligned, whose contents are
// lost; 0 where it has too few bytes for large ones.
double measure_product_rate(char *memory, int64_t bytes);

} // namespace trainc
