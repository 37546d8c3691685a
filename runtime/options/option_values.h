// SPDX-License-Identifier: Apache-2.0
//
// Values of options as text and back: what the type of a value lets a text be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

// Of numbers: from `least` on and below `limit`, which they may be too.
struct value_range {
  double least, limit;
  bool may_be_limit = true;
};

// Each takes over the value and returns an empty text, or says what is wrong with the text. A flag
// is "yes" or "no", a list grows by each text.
std::string read_value(const std::string &text, value_range range, bool &value);
std::string read_value(const std::string &text, value_range range, int64_t &value);
std::string read_value(const std::string &text, value_range range, uint64_t &value);
std::string read_value(const std::string &text, value_range range, double &value);
std::string read_value(const std::string &text, value_range range, std::string &value);
std::string read_value(const std::string &text, value_range range, std::vector<std::string> &value);

// What `read_value` takes for the same value. Nothing for a value that is not there.
std::string text_of(bool value);
std::string text_of(int64_t value);
std::string text_of(uint64_t value);
std::string text_of(double value);
inline std::string text_of(const std::string &value) { return value; }

template <typename T>
std::string read_value(const std::string &text, value_range range, std::optional<T> &value) {
  T found = {};
  std::string problem = read_value(text, range, found);
  if (problem.empty())
    value = found;
  return problem;
}

template <typename T> std::string text_of(const std::optional<T> &value) {
  return value ? text_of(*value) : "";
}

// Of a list, on one line.
std::string joined(const std::vector<std::string> &texts, const char *separator = " ");

} // namespace trainc
