// SPDX-License-Identifier: Apache-2.0
//
// Patterns of names, as options of the compiler and of trainers take them: --freeze,
// --recompute-pattern, --watch.
#pragma once

#include <algorithm>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace trainc {

// A regular expression in ECMAScript's syntax. It matches a name as a whole.
class name_pattern {
public:
  // Longer names match nothing: std::regex_match takes stack for each character.
  static constexpr size_t longest_name = 8192;

  // None where the text is not a regular expression; `why` then says what is wrong.
  static std::optional<name_pattern> parse(std::string_view text, std::string &why) {
    constexpr std::ptrdiff_t most_parentheses = 1000; // the compiler calls itself for each
    if (std::count(text.begin(), text.end(), '(') > most_parentheses) {
      why = "it has too many parentheses";
      return std::nullopt;
    }
    try {
      return name_pattern(std::regex(text.begin(), text.end()));
    } catch (const std::regex_error &error) {
      why = error.what();
      return std::nullopt;
    }
  }

  bool matches(std::string_view name) const {
    return name.size() <= longest_name && std::regex_match(name.begin(), name.end(), expression_);
  }

private:
  explicit name_pattern(std::regex expression) : expression_(std::move(expression)) {}
  std::regex expression_;
};

} // namespace trainc
