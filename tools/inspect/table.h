// SPDX-License-Identifier: Apache-2.0
//
// Rows of text in columns.
#pragma once

#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <string>
#include <vector>

namespace trainc::inspect {

class Table {
public:
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  bool empty() const { return rows.empty(); }

  /// Each row in a line, with `indent` spaces in front and two between columns.
  void print(llvm::raw_ostream &stream, int indent) const {
    for (const std::vector<std::string> &row : rows) {
      std::string line(size_t(indent), ' ');
      for (size_t i = 0; i < row.size(); ++i)
        line += row[i] + std::string(widthOf(i) + 2 - row[i].size(), ' ');
      line.erase(line.find_last_not_of(' ') + 1);
      stream << line << "\n";
    }
  }

private:
  size_t widthOf(size_t column) const {
    size_t width = 0;
    for (const std::vector<std::string> &row : rows)
      if (column < row.size())
        width = std::max(width, row[column].size());
    return width;
  }

  std::vector<std::vector<std::string>> rows;
};

} // namespace trainc::inspect
