// SPDX-License-Identifier: Apache-2.0
//
// Conversions from element types of files to those of inputs: where no value can change, and of
// floats to narrower ones.
#pragma once

#include "runtime/files/data_types.h"
#include "runtime/files/npy.h"

namespace trainc {

bool converts_without_loss(file_type from, data_type to);

// Floats of another width, rounded where they have more digits; one too large becomes infinite.
bool converts_by_rounding(file_type from, data_type to);

bool is_float(file_type type);

// Converts `count` elements; the ranges must not overlap unless from == to.
void convert(file_type from, const void *source, data_type to, void *target, int64_t count);

// Whether every value of an integer file type lies in [0, bound).
bool always_below(file_type type, int64_t bound);

} // namespace trainc
