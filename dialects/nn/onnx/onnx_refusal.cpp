// SPDX-License-Identifier: Apache-2.0
//
// The registry of refusals, filled by static objects before main.
#include "dialects/nn/onnx/onnx_refusal.h"
#include <map>
#include <set>

namespace trainc::nn {

// A function's static: declarations of other files may run before this file's own statics. In the
// order of the words: that of files is the linker's.
static std::map<std::string, std::set<std::string>> &refusals() {
  static std::map<std::string, std::set<std::string>> byOperator;
  return byOperator;
}

OnnxRefusal::OnnxRefusal(llvm::ArrayRef<llvm::StringRef> operators, llvm::StringRef what) {
  for (llvm::StringRef opType : operators)
    refusals()[opType.str()].insert(what.str());
}

std::vector<std::string> onnxRefusals(llvm::StringRef opType) {
  const std::set<std::string> &all = refusals()[opType.str()];
  return {all.begin(), all.end()};
}

} // namespace trainc::nn
