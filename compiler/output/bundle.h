// SPDX-License-Identifier: Apache-2.0
//
// A trainer that runs where its libraries are not installed.
#pragma once

#include "compiler/report.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

namespace trainc {

/// Copies the shared libraries that `program` loads, and those that they load, into a new folder of
/// `folder`: all but the C library's own, which belong to the system's loader. Returns the new
/// folder's name, a digest of what it holds: a trainer and another's libraries never meet.
llvm::FailureOr<std::string> bundleLibraries(const std::string &program, const std::string &folder,
                                             Report &report);

/// An error that names the libraries where those of the bundle in `folder` lack what `program`,
/// linked to them, needs: LD_LIBRARY_PATH may offer others than the linker took.
llvm::LogicalResult checkBundle(const std::string &program, const std::string &folder,
                                Report &report);

/// What the linker needs so that the program finds them in the folder of this name beside it.
std::vector<std::string> bundleLinkArguments(llvm::StringRef folderName);

} // namespace trainc
