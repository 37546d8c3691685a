// SPDX-License-Identifier: Apache-2.0
//
// Writes files. LLVM's stream ends the process where nobody asks it for its error.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <system_error>

namespace trainc {

/// What keeps the file from being complete; what was written of it stays.
std::error_code writeFile(llvm::StringRef path,
                          llvm::function_ref<void(llvm::raw_ostream &)> write);
std::error_code writeFile(llvm::StringRef path, llvm::StringRef text);

/// The same, but whole or not at all: written beside its place and renamed.
std::error_code writeWholeFile(llvm::StringRef path, llvm::StringRef text);

} // namespace trainc
