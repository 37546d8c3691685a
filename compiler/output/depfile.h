// SPDX-License-Identifier: Apache-2.0
//
// Tells a build system what an output was made from.
#pragma once

#include "compiler/report.h"
#include "llvm/ADT/ArrayRef.h"

namespace trainc {

/// Writes `target: files...` as Make, Ninja and CMake read it (DEPFILE of add_custom_command).
/// Fails where one of the names is none that all of them read.
llvm::LogicalResult writeDepfile(llvm::StringRef path, llvm::StringRef target,
                                 llvm::ArrayRef<std::string> files, Report &report);

} // namespace trainc
