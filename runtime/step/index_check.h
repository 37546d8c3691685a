// SPDX-License-Identifier: Apache-2.0
//
// Indexes that the model computes: the program says which was out of range, the runtime
// asks it with the loss.
#pragma once

#include "runtime/device.h"

#include <string>

namespace trainc {

// Queues the copy of what the entry function queued before found, into slots `slot` and
// `slot` + 1. Nothing for a program without such indexes.
void keep_index_check(device &target, const program &program, const tensor_place &check, int slot,
                      int stash_slot = 0);

// After `finish`: what was out of range, for a `failure` (exit_data), or nothing.
std::string index_problem(const device &target, const program &program, int slot);

} // namespace trainc
