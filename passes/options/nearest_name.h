// SPDX-License-Identifier: Apache-2.0
//
// What was probably meant by a name that is none.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace trainc {

/// What was probably meant: the least edits away, of these the one whose length differs least.
llvm::StringRef nearestOf(llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef name,
                          llvm::StringRef otherwise);

/// The nearest of all, then the nearest of the others; none where each is another word.
std::vector<std::string> nearestNames(std::vector<llvm::StringRef> names, llvm::StringRef name,
                                      size_t most);

} // namespace trainc
