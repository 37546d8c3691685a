// SPDX-License-Identifier: Apache-2.0
//
// Which shared array lies where, and which of them are the running kernel's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trainc::stand_in {

// Maps the section of shared memory, once, and makes the arrays of this kernel the
// only ones that may be touched.
void enter_shared_memory(const void *kernel);

// Whether all bytes lie in one array of the running kernel.
bool is_own_array(size_t offset, size_t bytes);

// "byte 12 of the shared array 'partial', which has 16".
std::string describe_shared(size_t offset);

} // namespace trainc::stand_in
