// SPDX-License-Identifier: Apache-2.0
//
// The limits of std::regex: its compiler and its matcher call themselves for each part of the
// pattern, and copy what `{N}` repeats.
#include "dialects/names/name_pattern.h"
#include <algorithm>

namespace trainc {

/// What the compiled pattern has at most is the product of all counts.
static bool isTooLarge(llvm::StringRef text) {
  constexpr size_t kLongest = 4000;
  constexpr double kMostParts = 10000;
  double parts = double(text.size());
  for (size_t at = text.find('{'); at != llvm::StringRef::npos; at = text.find('{', at + 1)) {
    unsigned least = 0, most = 0;
    auto [first, second] =
        text.substr(at + 1).take_until([](char c) { return c == '}'; }).split(',');
    first.consumeInteger(10, least);
    second.consumeInteger(10, most);
    parts *= std::max({1u, least, most});
  }
  return text.size() > kLongest || parts > kMostParts;
}

std::optional<NamePattern> NamePattern::parse(llvm::StringRef text, std::string &why) {
  if (isTooLarge(text)) {
    why = "it is too large";
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
