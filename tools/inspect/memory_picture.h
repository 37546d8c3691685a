// SPDX-License-Identifier: Apache-2.0
//
// The activations arena over the steps of an entry function as a picture.
#pragma once

#include "runtime/plan/plan.h"

#include <string>

namespace trainc::inspect {

/// SVG: each tensor a box from its first to its last step, at its offset: the arena as it fills and
/// empties, with an axis of bytes, a line at the arena's size and one where most bytes are alive.
std::string memoryPicture(const planned_entry &entry);

} // namespace trainc::inspect
