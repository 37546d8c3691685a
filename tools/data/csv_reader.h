// SPDX-License-Identifier: Apache-2.0
//
// Rows of a CSV file.
#pragma once

#include "runtime/files/file_operations.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trainc::data {

/// Throws `failure` (exit_data) about a line of the file.
[[noreturn]] void refuseLine(const input_file &file, int64_t line, const std::string &what);

using Row = std::vector<std::string>;

/// Rows of RFC 4180: fields in quotes may hold delimiters, line breaks and doubled quotes.
class CsvReader {
public:
  /// Throws `failure` (exit_data) for UTF-16 and UTF-32; skips the byte order mark of UTF-8.
  CsvReader(const input_file &file, char delimiter);

  int64_t line() const { return rowLine_; } // of the row read last
  int64_t bytes() const { return begin_ + static_cast<int64_t>(at_); }

  /// The next row, without empty lines; false at the end of the file. Throws `failure` (exit_data)
  /// for a quote that is not closed and for a zero byte.
  bool read(Row &row);

private:
  void quoted(std::string &field);
  int peek();
  int next();

  const input_file &file_;
  char delimiter_;
  std::string piece_;
  int64_t begin_ = 0, line_ = 1, rowLine_ = 1;
  size_t at_ = 0;
};

} // namespace trainc::data
