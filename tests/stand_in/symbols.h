// SPDX-License-Identifier: Apache-2.0
//
// The program's own symbol table: names of kernels, also of those that no other file
// sees, and the shared arrays of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainc::stand_in {

struct symbol {
  uintptr_t address;
  uint64_t bytes;
  std::string name; // as the source has it, with parameters
};

// Empty where there is none of this name or the program was stripped.
std::string function_at(uintptr_t address);
// Variables from `begin` to `end` by address.
std::vector<symbol> variables_between(uintptr_t begin, uintptr_t end);

} // namespace trainc::stand_in
