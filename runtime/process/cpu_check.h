// SPDX-License-Identifier: Apache-2.0
//
// Whether this CPU can run code built for a given -march.
#pragma once

#include <string>

namespace trainc {

// `march` is a -march name of GCC ("x86-64-v3", "znver3", "sapphirerapids") or a
// comma-separated list of features ("avx2,fma"). On false, `missing` lists the
// features that this CPU lacks. A name nobody knows counts as supported.
bool cpu_supports(const char *march, std::string *missing);

} // namespace trainc
