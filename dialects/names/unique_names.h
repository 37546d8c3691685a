// SPDX-License-Identifier: Apache-2.0
//
// Names told apart by numbers: `tanh`, `tanh_2`, `tanh_3`.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace trainc {

class UniqueNames {
public:
  /// Takes `name`; false where it was taken.
  bool take(llvm::StringRef name) { return taken.insert(name).second; }
  bool contains(llvm::StringRef name) const { return taken.contains(name); }

  /// `base`, or with the first number from 2 on that nobody has taken.
  std::string unique(llvm::StringRef base) {
    std::string name = base.str();
    if (take(name))
      return name;
    unsigned &next = nextNumber.try_emplace(base, 2).first->second; // smaller ones are taken
    do
      name = (base + "_" + llvm::Twine(next++)).str();
    while (!take(name));
    return name;
  }

private:
  llvm::StringSet<> taken;
  llvm::StringMap<unsigned> nextNumber;
};

} // namespace trainc
