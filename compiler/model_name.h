// SPDX-License-Identifier: Apache-2.0
//
// What a model is called that has no other name than its file's.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"
#include <string>

namespace trainc {

/// The file's name without its ending; never one that would lead elsewhere as a folder's: `onnx`
/// for `.onnx` and `..onnx`.
inline std::string modelName(llvm::StringRef path) {
  llvm::StringRef file = llvm::sys::path::filename(path).ltrim('.');
  return file.empty() ? "model" : llvm::sys::path::stem(file).str();
}

} // namespace trainc
