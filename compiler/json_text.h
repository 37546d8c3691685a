// SPDX-License-Identifier: Apache-2.0
//
// Names of a model in JSON.
#pragma once

#include "llvm/Support/JSON.h"

namespace trainc {

/// A model's names may be any bytes; JSON's must be UTF-8.
inline llvm::json::Value jsonText(llvm::StringRef text) { return llvm::json::fixUTF8(text); }

} // namespace trainc
