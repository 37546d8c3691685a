// SPDX-License-Identifier: Apache-2.0
//
// Which nodes PyTorch's TorchScript exporter made of one module. Their names bear its path
// (modulePath), with a number at the end for each further call of it: h.0.c_fc, then h.0.c_fc_1.
#pragma once

#include "compiler/onnx/model_file.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace trainc::reader {

struct WeightUse {
  std::optional<std::string> path; // of the node's module; none where its name does not tell
  bool isRecurrent = false;        // as what refuseSharedRecurrent looks at
};

class ModuleCalls {
public:
  /// The initializer of a name, also one that the exporter keeps under another; else null.
  using Tensors = std::function<const TensorBytes *(llvm::StringRef name)>;

  explicit ModuleCalls(Tensors tensors) : tensors(std::move(tensors)) {}

  /// A node in a module uses a value; initializers with a module's name are evidence.
  void addUse(llvm::StringRef path, llvm::StringRef value);
  /// Whether two paths are of one module; nullopt where they may be of a module that is called
  /// twice, or of another one whose own name ends in a number.
  std::optional<bool> areOne(llvm::StringRef a, llvm::StringRef b) const;
  /// Whether two weights with these values, of which one at least has no name, are one parameter of
  /// the module: if one module uses both. They are two if those that do are copies of each other,
  /// or if all elements are equal, as fresh ones may be; else modules may share them, and what the
  /// file has does not tell.
  std::optional<bool> areOneWeight(llvm::ArrayRef<WeightUse> a, llvm::ArrayRef<WeightUse> b,
                                   const TensorBytes &values) const;

private:
  bool areCopies(llvm::StringRef a, llvm::StringRef b, const TensorBytes &weight) const;
  std::map<std::string, std::string> namesBelow(llvm::StringRef path,
                                                const TensorBytes &weight) const;

  Tensors tensors;
  std::map<std::string, std::set<std::string>, std::less<>> named; // initializers, by path
};

} // namespace trainc::reader
