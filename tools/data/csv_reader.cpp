// SPDX-License-Identifier: Apache-2.0
//
// Reading of CSV files in pieces.
#include "tools/data/csv_reader.h"

#include "tools/data/encoding.h"

#include "runtime/failure.h"

#include <algorithm>

namespace trainc::data {

void refuseLine(const input_file &file, int64_t line, const std::string &what) {
  throw failure(exit_data, file.path() + ": line " + std::to_string(line) + ": " + what);
}

CsvReader::CsvReader(const input_file &file, char delimiter) : file_(file), delimiter_(delimiter) {
  if (const std::string encoding = wideEncoding(file); !encoding.empty())
    throw failure(exit_data, file.path() + ": is " + encoding +
                                 ", not UTF-8\n  try: " + conversionOf(file.path(), encoding));
  begin_ = static_cast<int64_t>(markBytes(file));
}

bool CsvReader::read(Row &row) {
  while (peek() == '\n' || peek() == '\r')
    next();
  if (peek() < 0)
    return false;
  rowLine_ = line_;
  row.assign(1, "");
  while (true) {
    int c = next();
    if (c == '"' && row.back().empty()) {
      quoted(row.back());
    } else if (c == delimiter_) {
      row.emplace_back();
    } else if (c == '\n' || c < 0) {
      return true;
    } else if (c != '\r' || peek() != '\n') {
      row.back() += static_cast<char>(c);
    }
  }
}

void CsvReader::quoted(std::string &field) {
  for (int c = next(); c >= 0; c = next()) {
    if (c == '"' && peek() != '"')
      return;
    if (c == '"')
      next();
    field += static_cast<char>(c);
  }
  refuseLine(file_, rowLine_, "a quote is not closed");
}

int CsvReader::peek() {
  if (at_ == piece_.size()) {
    begin_ += static_cast<int64_t>(piece_.size());
    piece_.resize(static_cast<size_t>(std::min<int64_t>(1 << 20, file_.size() - begin_)));
    file_.read(begin_, piece_.data(), static_cast<int64_t>(piece_.size()));
    at_ = 0;
  }
  return piece_.empty() ? -1 : static_cast<unsigned char>(piece_[at_]);
}

int CsvReader::next() {
  int c = peek();
  if (c == 0)
    refuseLine(file_, line_,
               "has a zero byte, which no table in UTF-8 has\n  try: `file` says what it is, "
               "iconv makes UTF-8 of a text");
  at_ += c >= 0;
  line_ += c == '\n';
  return c;
}

} // namespace trainc::data
