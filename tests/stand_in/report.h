// SPDX-License-Identifier: Apache-2.0
//
// The one message that ends a program whose device code is wrong.
#pragma once

#include <string>

namespace trainc::stand_in {

constexpr int exit_status = 70;

// Prints `stand-in: subject: what` and ends the process with status 70.
[[noreturn]] void fail(const std::string &subject, const std::string &what);

// The name of the function at an address, as the source has it, without parameters.
std::string function_name(const void *address);
// ` (kernels.cu:57)` for an address within a function, or nothing where the program
// has no line numbers.
std::string source_line(const void *address);

} // namespace trainc::stand_in
