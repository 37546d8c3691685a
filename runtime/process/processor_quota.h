// SPDX-License-Identifier: Apache-2.0
//
// How much of the machine's processors a container gives its processes.
#pragma once

#include <string>

namespace trainc {

// Processors, such as 1.5; 0 where there is no limit, or none that can be read. Of control groups
// of version 1 and 2, also of those around the process's own. `root` is "" but in tests.
double processor_quota(const std::string &root = "");

} // namespace trainc
