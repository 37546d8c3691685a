// SPDX-License-Identifier: Apache-2.0
//
// Runs in comparison, for a terminal: a row for each, as for a sweep.
#pragma once

#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace trainc::inspect {

/// What tells the runs apart, then their losses, metrics, steps and state. A run that cannot be
/// read is left out with a warning, as one that has just begun. Throws `failure` (exit_data) where
/// none can be read.
void printRunTable(const std::vector<std::string> &runs, llvm::raw_ostream &stream,
                   llvm::raw_ostream &warnings);

} // namespace trainc::inspect
