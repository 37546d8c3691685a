// SPDX-License-Identifier: Apache-2.0
//
// Two sets of statistics of tensors: where the runs part.
#pragma once

#include <optional>
#include <string>

namespace trainc::tools {

/// Prints what differs, the first tensor first. `got` and `expected`: files of statistics
/// (docs/observe.md), or folders of them. `tolerance`: of the relative distance in the 2-norm;
/// without one it follows from f32's own. Returns 0 where all agrees, 1 where not. Throws
/// InputError.
int compareStatistics(const std::string &got, const std::string &expected,
                      std::optional<double> tolerance);

} // namespace trainc::tools
