// SPDX-License-Identifier: Apache-2.0
//
// Copies a serialized model without its bulk.
#pragma once

#include "compiler/onnx/file/model_file.h"

namespace trainc::reader {

/// Where the values of a model's tensors lie in the file.
struct Payloads {
  std::vector<Payload> initializers;         // one for each, in order
  std::vector<llvm::ArrayRef<char>> inNodes; // large ones; their tensors have kValuesNumber
};

/// A field that no version of ONNX has: the place of a tensor's values in Payloads::inNodes.
constexpr int kValuesNumber = 500001;

/// Appends to `out` the model in `bytes` without the values of initializers and of large tensors in
/// nodes, and with one line of each stack trace. False: not protobuf.
bool stripModel(llvm::ArrayRef<char> bytes, std::string &out, Payloads &payloads);

/// The same for one serialized tensor.
bool stripTensor(llvm::ArrayRef<char> bytes, std::string &out, Payload &payload);

/// The key and the value of serialized metadata.
std::pair<llvm::StringRef, llvm::StringRef> metadataEntry(llvm::ArrayRef<char> bytes);

/// The innermost line of a stack trace that is not PyTorch's own, with the file's name alone:
/// `File "model.py", line 35, in forward`. Empty where there is none.
std::string ownLine(llvm::StringRef trace);

} // namespace trainc::reader
