// SPDX-License-Identifier: Apache-2.0
//
// What this build is: `--version`.
#pragma once

#include "compiler/installation.h"

namespace trainc {

/// Version, libraries that it was built with, targets whose trainers it can compile, and the CUDA
/// toolkit that it finds here.
std::string describeBuild(const Installation &installation);

} // namespace trainc
