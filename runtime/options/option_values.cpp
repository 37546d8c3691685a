// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/option_values.h"

#include "runtime/failure.h"

#include <charconv>
#include <cmath>

namespace trainc {
namespace {

template <typename T> std::string read_whole(const std::string &text, value_range range, T &value) {
  double number = 0;
  std::string problem = read_value(text, range, number);
  if (!problem.empty())
    return problem;
  if (number != std::floor(number))
    return "'" + text + "' is not a whole number";
  value = static_cast<T>(number);
  return "";
}

} // namespace

std::string read_value(const std::string &text, value_range range, double &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value))
    return "'" + text + "' is not a number";
  if (!range.may_be_limit && std::isinf(value))
    return text + " is not finite";
  if (value < range.least)
    return text + format_text(" is below %g", range.least);
  if (!range.may_be_limit && value >= range.limit)
    return text + format_text(" is not below %g", range.limit);
  if (value > range.limit)
    return text + format_text(" is above %g", range.limit);
  return "";
}

std::string read_value(const std::string &text, value_range range, int64_t &value) {
  return read_whole(text, range, value);
}

std::string read_value(const std::string &text, value_range range, uint64_t &value) {
  return read_whole(text, range, value);
}

std::string read_value(const std::string &text, value_range, bool &value) {
  value = text == "yes";
  return value || text == "no" ? "" : "takes no value"; // `no` undoes what a resumed run has
}

std::string read_value(const std::string &text, value_range, std::string &value) {
  value = text;
  return text.empty() ? "its value is empty" : "";
}

std::string read_value(const std::string &text, value_range range,
                       std::vector<std::string> &value) {
  return read_value(text, range, value.emplace_back());
}

std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(uint64_t value) { return std::to_string(value); }

std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string joined(const std::vector<std::string> &texts, const char *separator) {
  std::string all;
  for (const std::string &text : texts)
    all += (all.empty() ? "" : separator) + text;
  return all;
}

} // namespace trainc
