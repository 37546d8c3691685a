// SPDX-License-Identifier: Apache-2.0
//
// Patterns of names, as the compiler's options take them: --freeze, --train-only, --decay, --group,
// --batch-norm-of, --recompute-pattern.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <regex>
#include <string>

namespace trainc {

/// A regular expression in ECMAScript's syntax. It matches a name as a whole.
class NamePattern {
public:
  /// Longer names match nothing: std::regex_match takes stack for each character.
  static constexpr size_t kLongestName = 8192;

  /// None where the text is not a regular expression; `why` then says what is wrong.
  static std::optional<NamePattern> parse(llvm::StringRef text, std::string &why);
  bool matches(llvm::StringRef name) const;

private:
  explicit NamePattern(std::regex expression) : expression(std::move(expression)) {}
  std::regex expression;
};

} // namespace trainc
