// SPDX-License-Identifier: Apache-2.0
//
// What must hold of a file before its graph is looked at.
#pragma once

#include "compiler/onnx/file/model_file.h"

namespace trainc::reader {

/// True for versions of ONNX's own operator set that are read here.
bool servesOpset(int64_t version);

/// Checks versions, and that nothing that is named is there twice or says two things of itself.
bool checkFile(const ModelFile &file, Report &report);

/// Why no tensor of a safetensors file can bear the name; empty where it can.
std::string whyNotStored(llvm::StringRef name);

} // namespace trainc::reader
