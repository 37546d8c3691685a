// SPDX-License-Identifier: Apache-2.0
//
// Reading of texts with labels.
#include "tools/data/record_reader.h"

#include "tools/data/csv_column.h"
#include "tools/data/encoding.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace trainc::data {
namespace {

constexpr int kDeepestRecord = 32; // other fields of a record may nest
constexpr int64_t kReadBytes = 1 << 20;

class TableReader : public RecordReader {
public:
  TableReader(const input_file &file, const RecordFields &fields, char delimiter)
      : file_(file), reader_(file, delimiter) {
    if (!reader_.read(row_))
      throw failure(exit_data, file.path() + ": is empty");
    columns_ = row_.size();
    text_ = columnOf(fields.text, "--text");
    label_ = columnOf(fields.label, "--label");
  }

  bool read(LabelledText &record) override {
    if (!reader_.read(row_))
      return false;
    if (row_.size() != columns_)
      refuseLine(file_, reader_.line(),
                 format_text("%zu fields, expected %zu", row_.size(), columns_));
    record = {reader_.line(), row_[text_], row_[label_]};
    return true;
  }
  int64_t bytes() const override { return reader_.bytes(); }

private:
  size_t columnOf(const std::string &name, const std::string &option) const {
    std::string known;
    for (size_t i = 0; i < row_.size(); ++i) {
      if (trimmed(row_[i]) == name)
        return i;
      known += (known.empty() ? "" : ", ") + trimmed(row_[i]);
    }
    throw failure(exit_usage, file_.path() + ": has no column '" + name + "'\n  try: " + option +
                                  " with one of " + known);
  }

  const input_file &file_;
  CsvReader reader_;
  Row row_;
  size_t columns_ = 0, text_ = 0, label_ = 0;
};

class LinesReader : public RecordReader {
public:
  LinesReader(const input_file &file, RecordFields fields)
      : file_(file), fields_(std::move(fields)), at_(static_cast<int64_t>(markBytes(file))) {
    if (const std::string encoding = wideEncoding(file); !encoding.empty())
      throw failure(exit_data, file.path() + ": is " + encoding +
                                   ", not UTF-8\n  try: " + conversionOf(file.path(), encoding));
  }

  bool read(LabelledText &record) override {
    std::string line;
    do {
      if (!nextLine(line))
        return false;
    } while (line.find_first_not_of(" \t\r") == std::string::npos);
    const auto object = bounded_json(line, kDeepestRecord);
    if (!object.is_object())
      refuse(!foreignByte(line).empty()
                 ? "is not UTF-8\n  try: " + conversionOf(file_.path(), "WINDOWS-1252")
             : line.front() == '['
                 ? "is not a JSON object\n  try: jq -c '.[]' " + file_.path() +
                       " where all objects are in one array"
                 : format_text("is not a JSON object of at most %d levels, or has half of a "
                               "character (\\ud83d alone)\n  try: jq -c . ",
                               kDeepestRecord) +
                       file_.path() + ", which writes an object a line");
    const auto &text = fieldOf(object, fields_.text, "--text");
    if (!text.is_string())
      refuse("'" + fields_.text + "' is no text, but " + text.type_name());
    const auto &label = fieldOf(object, fields_.label, "--label");
    if (!label.is_primitive() || label.is_null())
      refuse("'" + fields_.label + "' is " + label.type_name() +
             "\n  try: a text, a number, true or false");
    record = {line_, text.get<std::string>(),
              label.is_string() ? label.get<std::string>() : label.dump()};
    return true;
  }
  int64_t bytes() const override { return at_; }

private:
  [[noreturn]] void refuse(const std::string &what) const { refuseLine(file_, line_, what); }

  const nlohmann::json &fieldOf(const nlohmann::json &object, const std::string &name,
                                const std::string &option) const {
    if (const auto found = object.find(name); found != object.end())
      return *found;
    std::string known;
    for (const auto &entry : object.items())
      known += (known.empty() ? "" : ", ") + entry.key();
    refuse("has no field '" + name + "'\n  try: one there, or " + option + " with one of " + known);
  }

  bool nextLine(std::string &line) {
    line.clear();
    if (at_ >= file_.size())
      return false;
    ++line_;
    while (at_ < file_.size()) {
      if (at_ < begin_ || at_ >= begin_ + static_cast<int64_t>(piece_.size())) {
        begin_ = at_;
        piece_.resize(static_cast<size_t>(std::min(kReadBytes, file_.size() - at_)));
        file_.read(at_, piece_.data(), static_cast<int64_t>(piece_.size()));
      }
      const auto from = static_cast<size_t>(at_ - begin_);
      const size_t end = piece_.find('\n', from);
      line.append(piece_, from, end == std::string::npos ? end : end - from);
      at_ = begin_ + static_cast<int64_t>(end == std::string::npos ? piece_.size() : end + 1);
      if (end != std::string::npos)
        break;
    }
    return true;
  }

  const input_file &file_;
  RecordFields fields_;
  std::string piece_;
  int64_t begin_ = 0, at_, line_ = 0;
};

} // namespace

std::unique_ptr<RecordReader> recordsOf(const input_file &file, const RecordFields &fields) {
  std::string ending = std::filesystem::path(file.path()).extension();
  for (char &c : ending)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (ending == ".jsonl" || ending == ".ndjson" || ending == ".json")
    return std::make_unique<LinesReader>(file, fields);
  return std::make_unique<TableReader>(file, fields, ending == ".tsv" ? '\t' : ',');
}

} // namespace trainc::data
