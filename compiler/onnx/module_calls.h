// SPDX-License-Identifier: Apache-2.0
//
// Which nodes PyTorch's TorchScript exporter made of one module. Their names bear its path; each
// further call of it has a number at the end: /h.0/c_fc/MatMul, then /h.0/c_fc_1/MatMul.
#pragma once

#include "compiler/onnx/model_file.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <optional>
#include <set>
#include <string>

namespace trainc::reader {

class ModuleCalls {
public:
  /// The tensor of a name; null where there is none.
  using Tensors = llvm::function_ref<const TensorBytes *(llvm::StringRef name)>;

  /// A node in a module uses a value; those with a module's name are evidence.
  void addUse(llvm::StringRef path, llvm::StringRef value);
  /// Whether two paths are of one module; nullopt where they may be of a module that is called
  /// twice, or of another one whose own name ends in a number.
  std::optional<bool> areOne(llvm::StringRef a, llvm::StringRef b) const;
  /// Whether one of two modules, or of those around them as far as the paths differ, is a copy of
  /// the other: what bears a name in both is equal, and some of it was drawn or trained. Equal
  /// weights without names are two then; else the modules may share one.
  bool areCopies(llvm::StringRef a, llvm::StringRef b, Tensors tensors) const;

private:
  std::map<std::string, std::string> namesBelow(llvm::StringRef path) const;

  std::map<std::string, std::set<std::string>, std::less<>> named; // values with names, by path
};

} // namespace trainc::reader
