// SPDX-License-Identifier: Apache-2.0
//
// Texts with labels, from lines of JSON or from a table.
#pragma once

#include "tools/data/csv_reader.h"

#include <memory>
#include <string>

namespace trainc::data {

struct LabelledText {
  int64_t line = 0; // where it begins
  std::string text, label;
};

/// The fields that hold them; a column of a table has its name in the first row.
struct RecordFields {
  std::string text, label;
};

class RecordReader {
public:
  virtual ~RecordReader() = default;

  /// The next record; false at the end. Throws `failure`: exit_data with the line for what is not a
  /// record, or lacks a field.
  virtual bool read(LabelledText &record) = 0;
  virtual int64_t bytes() const = 0; // read so far
};

/// JSON for files that end in .jsonl, .ndjson or .json: an object a line, whose label is a text, a
/// number, true or false. Tables for all others, with tabs between fields where they end in .tsv.
/// Throws `failure`: exit_usage where a table has no such column.
std::unique_ptr<RecordReader> recordsOf(const input_file &file, const RecordFields &fields);

} // namespace trainc::data
