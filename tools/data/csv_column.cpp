// SPDX-License-Identifier: Apache-2.0
//
// Numbers and texts in fields of a table.
#include "tools/data/csv_column.h"

#include "tools/data/arguments.h"
#include "tools/data/encoding.h"

#include "runtime/failure.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>

namespace trainc::data {
namespace {

constexpr size_t kMostClasses = 1 << 16;

// All whole numbers below it are apart from each other in the type.
template <typename T>
constexpr double kExactBelow = double(int64_t{1} << std::numeric_limits<T>::digits);

std::string withoutPlus(const std::string &field) {
  std::string text = trimmed(field);
  return text.size() > 1 && text[0] == '+' ? text.substr(1) : text;
}

// The digits of a whole number, such as -7 of -007.00; empty for all others.
std::string digitsOf(const std::string &field) {
  std::string text = withoutPlus(field);
  const size_t sign = !text.empty() && text[0] == '-';
  const size_t end = std::min(text.find('.', sign), text.size());
  if (end == sign || text.find_first_not_of("0123456789", sign) < end ||
      text.find_first_not_of('0', std::min(end + 1, text.size())) != std::string::npos)
    return "";
  const size_t first = std::min(text.find_first_not_of('0', sign), end - 1);
  return text.substr(0, sign) + text.substr(first, end - first);
}

// `digits` are those of the value.
template <typename T>
void noteRounding(Rounded &rounded, int64_t line, const std::string &digits, double value) {
  auto nearest = static_cast<double>(static_cast<T>(value));
  if (std::abs(value) < kExactBelow<T> || !std::isfinite(nearest) ||
      format_text("%.0f", nearest) == digits)
    return;
  if (rounded.count++ == 0) {
    rounded.first = {line, digits};
    rounded.nearest = nearest;
  }
}

} // namespace

std::string trimmed(const std::string &text) {
  size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

bool fieldToNumber(const std::string &field, double &value) {
  return toNumber(withoutPlus(field), value);
}

bool fieldToWhole(const std::string &field, int64_t &value) {
  const std::string digits = digitsOf(field);
  if (!digits.empty())
    return std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
  double number = 0;
  if (!fieldToNumber(field, number) || number != std::floor(number) ||
      std::abs(number) >= kExactBelow<double>)
    return false;
  value = static_cast<int64_t>(number);
  return true;
}

void Column::note(int64_t line, const std::string &field) {
  double value = 0;
  const bool isNumber = fieldToNumber(field, value);
  const std::string shown = trimmed(field);
  (shown.empty() ? empty : isNumber ? number : text).note(line, shown);
  numbers &= isNumber;
  noteText(line, shown);
  if (isNumber)
    noteNumber(line, shown, value);
  else
    whole = digits = false;
}

void Column::noteText(int64_t line, const std::string &shown) {
  if (foreign.line == 0)
    if (const std::string byte = foreignByte(shown); !byte.empty())
      foreign.note(line, byte);
  if (beyond.line == 0)
    ++texts[shown];
  if (texts.size() > kMostClasses) { // of numbers: they are not needed
    beyond.note(line, shown);
    texts.clear();
  }
}

void Column::noteNumber(int64_t line, const std::string &shown, double value) {
  int64_t exact = 0;
  if (!fieldToWhole(shown, exact)) {
    whole = false;
    fraction.note(line, shown);
  }
  if (digits) {
    const std::string written = digitsOf(shown);
    digits = !written.empty();
    noteRounding<float>(inSingle, line, written, value);
    noteRounding<double>(inDouble, line, written, value);
  }
  const double difference = value - mean; // Welford's way, which loses no digits
  mean += difference / ++count;
  squares += difference * (value - mean);
  if (std::abs(value) > std::abs(largest)) {
    largest = value;
    largestLine = line;
  }
}

int64_t Column::classOf(const std::string &field) const {
  return std::distance(texts.begin(), texts.find(trimmed(field)));
}

void printClasses(const Column &column) {
  if (column.numbers)
    return;
  printf("%s:", column.name.c_str());
  const size_t shown = std::min(column.texts.size(), kShownClasses);
  auto at = column.texts.begin();
  for (size_t number = 0; number < shown; ++number, ++at)
    printf("%s %zu = %s (%" PRId64 ")", number ? "," : "", number, at->first.c_str(), at->second);
  if (shown < column.texts.size())
    printf(" and %zu more, which the manifest lists", column.texts.size() - shown);
  printf("\n");
}

} // namespace trainc::data
