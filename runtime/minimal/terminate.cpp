// SPDX-License-Identifier: Apache-2.0
//
// What the C++ library does where it cannot go on. Its own handler prints, and brings the 50 KB
// that make names readable.
#include <cstdlib>
#include <exception>

namespace __cxxabiv1 {
extern std::terminate_handler __terminate_handler;
std::terminate_handler __terminate_handler = std::abort;
} // namespace __cxxabiv1
