// SPDX-License-Identifier: Apache-2.0
//
// What the fields of a column of a table are.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace trainc::data {

/// Without blanks around it.
std::string trimmed(const std::string &text);

/// A finite number, with blanks and a plus sign, which tables hold and options do not.
bool fieldToNumber(const std::string &field, double &value);

/// Where a column has a field of some kind for the first time.
struct Sight {
  int64_t line = 0; // 0: nowhere
  std::string field;

  void note(int64_t where, const std::string &what) {
    if (line == 0)
      *this = {where, what};
  }
};

/// What all fields of a column are.
struct Column {
  std::string name;
  bool numbers = true, whole = true;
  std::map<std::string, int64_t> texts;    // the classes, in order, where they are no numbers
  Sight empty, number, text;               // the first of each
  Sight beyond;                            // of too many different texts
  Sight foreign;                           // not UTF-8
  double count = 0, mean = 0, squares = 0; // of differences from the mean
  double largest = 0;                      // by its amount, and where
  int64_t largestLine = 0;

  void note(int64_t line, const std::string &field);
  int64_t classOf(const std::string &field) const;

private:
  void noteText(int64_t line, const std::string &shown);
  void noteNumber(int64_t line, double value);
};

} // namespace trainc::data
