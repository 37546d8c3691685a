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

/// A number without a fraction: all of those that int64 holds where it is written in digits, and
/// below 2^53 where it has an exponent.
bool fieldToWhole(const std::string &field, int64_t &value);

/// Where a column has a field of some kind for the first time.
struct Sight {
  int64_t line = 0; // 0: nowhere
  std::string field;

  void note(int64_t where, const std::string &what) {
    if (line == 0)
      *this = {where, what};
  }
};

/// Whole numbers that a floating-point type does not hold.
struct Rounded {
  Sight first;
  double nearest = 0; // what becomes of the first
  int64_t count = 0;
};

/// What all fields of a column are.
struct Column {
  std::string name;
  bool numbers = true;
  bool whole = true;                       // int64 holds them
  bool digits = true;                      // they are written as whole numbers, however large
  std::map<std::string, int64_t> texts;    // the classes, in order, where they are not numbers
  Sight empty, number, text, fraction;     // fraction: a number that int64 does not hold
  Sight beyond;                            // of too many different texts
  Sight foreign;                           // not UTF-8
  Rounded inSingle, inDouble;              // where all are digits
  double count = 0, mean = 0, squares = 0; // of differences from the mean
  double largest = 0;                      // by its amount, and where
  int64_t largestLine = 0;

  void note(int64_t line, const std::string &field);
  int64_t classOf(const std::string &field) const;

private:
  void noteText(int64_t line, const std::string &shown);
  void noteNumber(int64_t line, const std::string &shown, double value);
};

constexpr size_t kShownClasses = 10; // as many as anybody reads

/// A line with the numbers of a column's texts, of the first ones where they are many; none for
/// numbers.
void printClasses(const Column &column);

} // namespace trainc::data
