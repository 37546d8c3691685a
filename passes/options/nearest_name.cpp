// SPDX-License-Identifier: Apache-2.0
#include "passes/options/nearest_name.h"
#include <utility>

namespace trainc {

llvm::StringRef nearestOf(llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef name,
                          llvm::StringRef otherwise) {
  llvm::StringRef nearest = otherwise;
  std::pair<size_t, size_t> least(name.size() / 3 + 2, 0);
  for (llvm::StringRef other : names) {
    const size_t lengths =
        std::max(other.size(), name.size()) - std::min(other.size(), name.size());
    if (std::pair<size_t, size_t> edits(name.edit_distance(other), lengths); edits < least) {
      nearest = other;
      least = edits;
    }
  }
  return nearest;
}

std::vector<std::string> nearestNames(std::vector<llvm::StringRef> names, llvm::StringRef name,
                                      size_t most) {
  std::vector<std::string> nearest;
  while (nearest.size() < most) {
    llvm::StringRef next = nearestOf(names, name, "");
    if (next.empty())
      break;
    nearest.push_back(next.str());
    llvm::erase(names, next);
  }
  return nearest;
}

} // namespace trainc
