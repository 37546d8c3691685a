// SPDX-License-Identifier: Apache-2.0
//
// The limits of std::regex: its compiler calls itself for each parenthesis.
#include "dialects/names/name_pattern.h"

namespace trainc {

static bool isNestedTooDeeply(llvm::StringRef text) {
  constexpr size_t kDeepest = 1000;
  return text.count('(') > kDeepest;
}

std::optional<NamePattern> NamePattern::parse(llvm::StringRef text, std::string &why) {
  if (isNestedTooDeeply(text)) {
    why = "it has too many parentheses";
    return std::nullopt;
  }
  try {
    return NamePattern(std::regex(text.begin(), text.end()));
  } catch (const std::regex_error &error) {
    why = error.what();
    return std::nullopt;
  }
}

bool NamePattern::matches(llvm::StringRef name) const {
  return name.size() <= kLongestName && std::regex_match(name.begin(), name.end(), expression);
}

} // namespace trainc
