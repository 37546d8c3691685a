// SPDX-License-Identifier: Apache-2.0
//
// Patterns of names, as options of the compiler and of trainers take them: --freeze, --train-only,
// --decay, --group, --batch-norm-of, --recompute-pattern, --watch, --rename.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace trainc {

// A regular expression in ECMAScript's syntax.
class name_pattern {
public:
  // Longer names match nothing: std::regex_match takes stack for each character.
  static constexpr size_t longest_name = 8192;

  // None where the text is not a regular expression; `why` then says what is wrong.
  static std::optional<name_pattern> parse(std::string_view text, std::string &why) {
    if (is_too_large(text)) {
      why = "it is too large";
      return std::nullopt;
    }
    try {
      return name_pattern(std::regex(text.begin(), text.end()));
    } catch (const std::regex_error &error) {
      why = error.what();
      return std::nullopt;
    }
  }

  // As a whole. A line's end in the name counts as a space, which `.` stands for too.
  bool matches(std::string_view name) const {
    if (name.size() > longest_name)
      return false;
    std::string line(name);
    for (char &c : line)
      c = c == '\n' || c == '\r' ? ' ' : c;
    return std::regex_match(line, expression_);
  }

  // With `text` for what it finds first, as sed's s has it: \1 is a group, & all that was found.
  std::string replaced(const std::string &name, const std::string &text) const {
    namespace flags = std::regex_constants;
    return name.size() > longest_name
               ? name
               : std::regex_replace(name, expression_, text,
                                    flags::format_sed | flags::format_first_only);
  }

private:
  explicit name_pattern(std::regex expression) : expression_(std::move(expression)) {}

  // std::regex compiles and matches by calling itself for each part of the pattern, and copies what
  // `{N}` repeats: what it has at most is the product of all counts.
  static bool is_too_large(std::string_view text) {
    constexpr size_t longest = 4000;
    constexpr double most_parts = 10000;
    auto parts = static_cast<double>(text.size());
    for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
      const std::string counts(text.substr(at + 1, 24));
      char *behind = nullptr;
      const double least = std::strtod(counts.c_str(), &behind);
      const double most = *behind == ',' ? std::strtod(behind + 1, nullptr) : 0;
      parts *= std::max({1.0, least, most});
    }
    return text.size() > longest || !(parts <= most_parts);
  }

  std::regex expression_;
};

// PATTERN=TEXT: what changes names. A pattern may have equals signs, a text has none.
struct name_change {
  name_pattern pattern;
  std::string text, words; // the words are both, as they were given

  // None where it is not of this form; `why` then says what is wrong.
  static std::optional<name_change> parse(const std::string &words, std::string &why) {
    const size_t equals = words.rfind('=');
    if (equals == words.npos || equals == 0) {
      why = "it does not have the form PATTERN=TEXT";
      return std::nullopt;
    }
    std::optional<name_pattern> found = name_pattern::parse(words.substr(0, equals), why);
    if (!found)
      return std::nullopt;
    return name_change{std::move(*found), words.substr(equals + 1), words};
  }
};

} // namespace trainc
