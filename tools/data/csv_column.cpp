// SPDX-License-Identifier: Apache-2.0
//
// Numbers and texts in fields of a table.
#include "tools/data/csv_column.h"

#include "tools/data/arguments.h"
#include "tools/data/encoding.h"

#include <cmath>
#include <iterator>

namespace trainc::data {
namespace {

constexpr size_t kMostClasses = 1 << 16;

std::string withoutPlus(const std::string &field) {
  std::string text = trimmed(field);
  return text.size() > 1 && text[0] == '+' ? text.substr(1) : text;
}

} // namespace

std::string trimmed(const std::string &text) {
  size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

bool fieldToNumber(const std::string &field, double &value) {
  return toNumber(withoutPlus(field), value);
}

void Column::note(int64_t line, const std::string &field) {
  double value = 0;
  const bool isNumber = fieldToNumber(field, value);
  const std::string shown = trimmed(field);
  (shown.empty() ? empty : isNumber ? number : text).note(line, shown);
  numbers &= isNumber;
  noteText(line, shown);
  whole &= isNumber && value == std::floor(value) && std::abs(value) < 1e15;
  if (isNumber)
    noteNumber(line, value);
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

void Column::noteNumber(int64_t line, double value) {
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

} // namespace trainc::data
