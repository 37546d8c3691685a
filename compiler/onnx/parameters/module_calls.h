// SPDX-License-Identifier: Apache-2.0
//
// Which nodes PyTorch's TorchScript exporter made of one module. Their names bear its path
// (modulePath), with a number at the end for each further call of it: h.0.c_fc, then h.0.c_fc_1.
#pragma once

#include "compiler/onnx/parameters/claims.h"

namespace trainc::reader {

struct WeightUse {
  std::optional<std::string> path; // of the node's module; none where its name does not tell
  bool isRecurrent = false;        // its gates have another order than the module's
};

class ModuleCalls {
public:
  /// A node in a module uses an initializer; those with a module's name are evidence.
  void addUse(llvm::StringRef path, llvm::StringRef initializer);
  /// Whether two weights with these values are one parameter of the module. One of them at least
  /// has no name. They are if two calls of one module use them, and they are not if all elements
  /// are equal, as fresh ones may be, and two modules use them. Else two modules may share it, or
  /// one be a copy of the other, even where all besides is equal: a copy may have been given the
  /// weight again. Nor does a file tell of one call, which may use a parameter twice or two of
  /// them.
  std::optional<bool> areOneWeight(llvm::ArrayRef<WeightUse> a, llvm::ArrayRef<WeightUse> b,
                                   const TensorBytes &values) const;

private:
  std::optional<bool> areOne(llvm::StringRef a, llvm::StringRef b) const;

  std::map<std::string, std::set<std::string>, std::less<>> modules; // of initializers, by path
};

} // namespace trainc::reader
