// SPDX-License-Identifier: Apache-2.0
//
// Words of messages: counts, lists of names; and values that have words, on the command line and in
// files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

// "1 sample", "2 samples", "0 batches".
inline std::string counted(int64_t number, const std::string &noun) {
  const bool hisses = noun.size() > 1 && noun.compare(noun.size() - 2, 2, "ch") == 0;
  return std::to_string(number) + " " + noun + (number == 1 ? "" : hisses ? "es" : "s");
}

// "a, b and 3 more"
inline std::string first_words_of(const std::vector<std::string> &words) {
  constexpr size_t shown = 8;
  std::string text;
  for (size_t i = 0; i < words.size() && i < shown; ++i)
    text += (text.empty() ? "" : ", ") + words[i];
  if (words.size() > shown)
    text += " and " + std::to_string(words.size() - shown) + " more";
  return text;
}

// "'a', 'b' and 3 more"
inline std::string first_of(std::vector<std::string> names) {
  for (std::string &name : names)
    name = "'" + name + "'";
  return first_words_of(names);
}

template <typename T> struct word_row {
  const char *word;
  T value;
};

// Empty of a value without a word.
template <typename T, size_t count>
const char *word_of(const word_row<T> (&words)[count], const T &value) {
  for (const word_row<T> &row : words)
    if (row.value == value)
      return row.word;
  return "";
}

// Nothing of another word.
template <typename T, size_t count>
std::optional<T> value_of(const word_row<T> (&words)[count], const std::string &word) {
  for (const word_row<T> &row : words)
    if (word == row.word)
      return row.value;
  return std::nullopt;
}

} // namespace trainc
