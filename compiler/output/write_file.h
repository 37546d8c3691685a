// SPDX-License-Identifier: Apache-2.0
//
// Writes files. LLVM's stream ends the process where nobody asks it for its error.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <system_error>

namespace trainc {

/// A file of an output that takes its place as a whole (OutputFolder): what keeps it from being
/// complete. What was written of it stays.
std::error_code writeFile(llvm::StringRef path, llvm::StringRef text);

/// Any other: whole or not at all, written beside its place and renamed. What was there before
/// stays where it cannot be written. What is not a file, such as /dev/null, is written to.
std::error_code writeWholeFile(llvm::StringRef path,
                               llvm::function_ref<void(llvm::raw_ostream &)> write);
std::error_code writeWholeFile(llvm::StringRef path, llvm::StringRef text);

/// Where a failure leaves what explains it: not beside the model nor in the output. Nobody else can
/// have put anything there: others may write into the folder too.
std::string temporaryPath(llvm::StringRef name);

} // namespace trainc
