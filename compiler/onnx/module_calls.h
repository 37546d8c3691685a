// SPDX-License-Identifier: Apache-2.0
//
// Which nodes PyTorch's TorchScript exporter made of one module. Their names bear its path; each
// further call of it has a number at the end: /h.0/c_fc/MatMul, then /h.0/c_fc_1/MatMul.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <map>
#include <optional>
#include <set>
#include <string>

namespace trainc::reader {

class ModuleCalls {
public:
  /// A node in a module uses a value; those with a module's name are evidence.
  void addUse(llvm::StringRef path, llvm::StringRef value);
  /// Whether two paths are of one module; nullopt where they may be of a module that is called
  /// twice, or of another one whose own name ends in a number.
  std::optional<bool> areOne(llvm::StringRef a, llvm::StringRef b) const;

private:
  std::map<std::string, std::set<std::string>, std::less<>> modules; // of parameters, by path
};

} // namespace trainc::reader
