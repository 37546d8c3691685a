// SPDX-License-Identifier: Apache-2.0
//
// Operators whose functions a user supplies, forward and backward, without building trainc again:
// docs/custom_operators.md.
#pragma once

#include "compiler/report.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace trainc {

struct CustomOperator {
  std::string manifest;           // its path
  std::string name;               // for messages
  std::string folder;             // of its files, in the emitted source
  std::vector<std::string> files; // to be copied there
};

/// Reads manifests and registers an importer of each operator, so that models that are read from
/// now on may have it. What is wrong goes to `report`.
std::vector<CustomOperator> readCustomOperators(llvm::ArrayRef<std::string> paths,
                                                llvm::StringRef target, Report &report);

} // namespace trainc
