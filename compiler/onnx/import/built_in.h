// SPDX-License-Identifier: Apache-2.0
//
// Operators that the reader itself serves, none of the importers: those with bodies, which are put
// in their place (inliner.h), and those of sequences, which are known when the model is compiled.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace trainc::reader {

struct BuiltIn {
  llvm::StringRef opType;
  int64_t since; // the first operator set that has it
};

/// In alphabetical order.
std::vector<BuiltIn> builtInOperators();

/// The operator sets in which an operator is one thing, such as `7 to 12, 13 to 28`, as ONNX
/// declares it and as its importers, of the sets from these on, tell versions apart.
std::string versionsOf(llvm::StringRef opType, std::set<int64_t> importers);

} // namespace trainc::reader
