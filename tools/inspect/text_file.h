// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trainc::inspect {

/// A text file of an output folder. Throws `failure` (exit_data) where it cannot be read.
std::string readText(const std::string &path);

} // namespace trainc::inspect
