// SPDX-License-Identifier: Apache-2.0
//
// Copies a serialized model without its bulk.
#pragma once

#include "compiler/onnx/model_file.h"

namespace trainc::reader {

/// Appends to `out` the model in `bytes` without initializers' values and stack traces; `payloads`
/// receives where the values lie, one entry per initializer in order. False: not protobuf.
bool stripModel(llvm::ArrayRef<char> bytes, std::string &out, std::vector<Payload> &payloads);

/// The same for one serialized tensor.
bool stripTensor(llvm::ArrayRef<char> bytes, std::string &out, Payload &payload);

} // namespace trainc::reader
