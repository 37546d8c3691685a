// SPDX-License-Identifier: Apache-2.0
//
// What importers refuse by themselves of operators that ONNX allows: the support table lists it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>
#include <vector>

namespace trainc::nn {

/// Declares it, as words that follow "refused:". Static objects beside the importer; what
/// OnnxRegistration can say (words of attributes, inputs that must be known) is said there.
class OnnxRefusal {
public:
  OnnxRefusal(llvm::ArrayRef<llvm::StringRef> operators, llvm::StringRef what);

  /// The message of such an error. `tests/docs/refusals.py` looks for messages without one.
  const llvm::Twine &told(const llvm::Twine &message) const { return message; }
};

/// What is declared of an operator of ONNX's own, in alphabetical order.
std::vector<std::string> onnxRefusals(llvm::StringRef opType);

} // namespace trainc::nn
