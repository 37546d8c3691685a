// SPDX-License-Identifier: Apache-2.0
//
// `trainc-data csv`: arrays from a table of text. The file is read twice: what its columns hold,
// then their values.
#include "tools/data/commands.h"
#include "tools/data/csv_column.h"
#include "tools/data/csv_reader.h"
#include "tools/data/data_file.h"
#include "tools/data/encoding.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <memory>

namespace trainc::data {
namespace {

/// Columns that become one file.
struct Group {
  std::string name;
  std::vector<size_t> columns;
  bool isLabel = false;
};

class CsvCommand {
public:
  explicit CsvCommand(const Arguments &arguments)
      : arguments_(arguments), file_(arguments.words[0], exit_data) {
    const std::string &text = arguments.text("delimiter");
    if (text != "tab" && text.size() != 1)
      throw failure(exit_usage,
                    "option --delimiter: '" + text + "' is not a single character, nor tab");
    delimiter_ = text == "tab" ? '\t' : text[0];
    if (arguments.words.size() > 1)
      throw failure(exit_usage, "csv: takes one file; " + arguments.words[1] + " is another");
  }

  void run() {
    Progress progress("csv", 2 * file_.size(), arguments_.has("no-progress"));
    inspect(progress);
    form();
    write(progress);
  }

private:
  void inspect(Progress &progress) {
    CsvReader reader(file_, delimiter_);
    Row row;
    while (reader.read(row)) {
      if (columns_.empty()) {
        nameColumns(row, reader.line());
        if (!arguments_.has("no-header"))
          continue;
      }
      if (row.size() != columns_.size())
        refuseLine(file_, reader.line(),
                   format_text("%zu fields, expected %zu", row.size(), columns_.size()));
      for (size_t i = 0; i < row.size(); ++i)
        columns_[i].note(reader.line(), row[i]);
      ++rows_;
      progress.at(reader.bytes());
    }
    if (rows_ == 0)
      throw failure(exit_data, file_.path() + ": has no row of data");
  }

  void nameColumns(const Row &row, int64_t line) {
    columns_.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      columns_[i].name = std::to_string(i + 1);
      if (arguments_.has("no-header"))
        continue;
      if (const std::string byte = foreignByte(row[i]); !byte.empty())
        refuse({line, ""}, columns_[i], "has a name with " + foreignText(byte));
      columns_[i].name = trimmed(row[i]);
    }
  }

  // Of a table that is not a UTF-8. No byte says which encoding it is; that one is the most common.
  std::string foreignText(const std::string &byte) const {
    return "the byte " + byte +
           ", which is not UTF-8\n  try: " + conversionOf(file_.path(), "WINDOWS-1252") +
           ", or another encoding that it has";
  }

  size_t columnOf(const std::string &name) const {
    std::string known;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == name)
        return i;
      known += (known.empty() ? "" : ", ") + columns_[i].name;
    }
    throw failure(exit_usage, file_.path() + ": has no column '" + name + "'\n  try: " + known);
  }

  [[noreturn]] void refuse(const Sight &at, const Column &column, const std::string &what) const {
    refuseLine(file_, at.line, "column '" + column.name + "' " + what);
  }
  static std::string dropOf(const Column &column) { return "--drop '" + column.name + "'"; }

  // Throws unless all fields of the column are numbers, or all are texts of not too many classes.
  void check(const Column &column) const {
    const std::string drop = dropOf(column);
    if (column.foreign.line)
      refuse(column.foreign, column, "has " + foreignText(column.foreign.field) + "; or " + drop);
    if (column.empty.line)
      refuse(column.empty, column, "is empty\n  try: a value there, or " + drop);
    if (column.number.line && column.text.line)
      refuse(column.text, column,
             format_text("has '%s', but line %" PRId64 " has the number %s\n  try: a "
                         "number there, ",
                         column.text.field.c_str(), column.number.line,
                         column.number.field.c_str()) +
                 "--classes '" + column.name + "' where all are names of classes, or " + drop);
    if (!column.numbers && column.beyond.line)
      refuse(column.beyond, column,
             "has '" + column.beyond.field +
                 "' among more than 65,536 other values, too many for classes\n"
                 "  try: " +
                 drop);
  }

  // Whole numbers that the file's type would round are an error, or a warning where that type was
  // asked for; so are others than whole numbers where they were.
  void checkWhole(const Group &group, const Column &column) const {
    const file_type type = typeOf(group);
    if (!column.numbers)
      return;
    if (type == file_type::i64) {
      if (!column.whole)
        refuse(column.fraction, column,
               "has " + column.fraction.field + ", which int64 does not hold\n  try: --type f32");
      return;
    }
    const bool isSingle = type == file_type::f32 && !normalises(group); // which computes in double
    const Rounded &rounded = isSingle ? column.inSingle : column.inDouble;
    if (!column.digits || rounded.count == 0)
      return;
    const char *name = name_of(isSingle ? file_type::f32 : file_type::f64);
    std::string what = format_text("has %s, which %s rounds to %.0f", rounded.first.field.c_str(),
                                   name, rounded.nearest);
    if (rounded.count > 1)
      what += format_text(", and %" PRId64 " more that it rounds", rounded.count - 1);
    if (asked() == "auto")
      refuse(rounded.first, column, what + "\n  try: " + exactTypes(group, column));
    fprintf(stderr, "trainc-data: warning: %s: line %" PRId64 ": column '%s' %s\n",
            file_.path().c_str(), rounded.first.line, column.name.c_str(), what.c_str());
  }

  // No model learns a class from one row. Few classes may be those of a table to try things with.
  void warnOfUnique(const Column &column) const {
    if (column.numbers || column.texts.size() <= kShownClasses)
      return;
    const auto unique = std::count_if(column.texts.begin(), column.texts.end(),
                                      [](const auto &text) { return text.second == 1; });
    if (2 * unique <= rows_)
      return;
    fprintf(stderr,
            "trainc-data: warning: %s: column '%s' has %td values in %" PRId64 " rows that are "
            "there once: texts or identifiers, rather than classes\n  try: another column, or %s\n",
            file_.path().c_str(), column.name.c_str(), unique, rows_, dropOf(column).c_str());
  }

  // What to do about a column that would be rounded.
  std::string exactTypes(const Group &group, const Column &column) const {
    std::string types;
    if (column.whole && !normalises(group) && !group.isLabel)
      types += "--type i64, ";
    if (column.inDouble.count == 0)
      types += group.isLabel ? "--type f64, " : "--type f64, --normalise, ";
    types += column.inDouble.count == 0 ? "--type f32 where that is near enough, "
                                        : "--type f32 or f64 where that is near enough, ";
    return types + "--classes '" + column.name + "' where they are names, or " + dropOf(column);
  }

  // Of an --input NAME=COLUMN,...
  Group inputOf(const std::string &item) const {
    size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      throw failure(exit_usage,
                    "option --input: '" + item + "' does not have the form NAME=COLUMN,...");
    Group group = {item.substr(0, equals), {}};
    if (group.name.find('/') != std::string::npos)
      throw failure(exit_usage, "option --input: '" + group.name +
                                    "' names a file below -o, which no `/` may lead out of\n  try: "
                                    "another name; the trainer's --data says of which input it is");
    for (const std::string &name : splitAt(item.substr(equals + 1), ','))
      group.columns.push_back(columnOf(name));
    return group;
  }

  void form() {
    std::vector<bool> used(columns_.size());
    for (const std::string &name : arguments_.list("classes")) {
      Column &column = columns_[columnOf(name)];
      column.numbers = column.whole = false;
      column.number = {};
    }
    if (arguments_.has("label")) {
      groups_.push_back({"labels", {columnOf(arguments_.text("label"))}, true});
      used[groups_[0].columns[0]] = true;
    }
    for (const std::string &name : arguments_.list("drop"))
      used[columnOf(name)] = true;
    for (const std::string &item : arguments_.list("input"))
      groups_.push_back(inputOf(item));
    if (arguments_.list("input").empty()) {
      Group group = {"x", {}};
      for (size_t i = 0; i < columns_.size(); ++i)
        if (!used[i])
          group.columns.push_back(i);
      if (!group.columns.empty())
        groups_.push_back(group);
    }
    for (const Group &group : groups_)
      for (size_t i : group.columns)
        check(group, columns_[i]);
  }

  void check(const Group &group, const Column &column) const {
    check(column);
    checkWhole(group, column);
    warnOfUnique(column);
    if (normalises(group) && !std::isfinite(column.squares))
      refuse({column.largestLine, ""}, column,
             format_text("has %g, with which mean and deviation cannot be computed\n  try: ",
                         column.largest) +
                 dropOf(column));
    if (!group.isLabel && !column.numbers && group.columns.size() > 1)
      throw failure(exit_data, file_.path() + ": column '" + column.name +
                                   "' holds text, such as '" + column.texts.begin()->first +
                                   "'\n  try: --drop, --label, or an --input of its own, which "
                                   "becomes the number of each text");
  }

  // Text becomes the number of its class. Labels keep whole numbers, and so do lone columns
  // unless a --type says another.
  file_type typeOf(const Group &group) const {
    const Column &first = columns_[group.columns[0]];
    bool mayBeWhole = group.isLabel || (group.columns.size() == 1 && asked() == "auto");
    if (!first.numbers || (mayBeWhole && first.whole && !normalises(group)))
      return file_type::i64;
    if (asked() == "i64" && !group.isLabel)
      return file_type::i64;
    return asked() == "f64" ? file_type::f64 : file_type::f32;
  }
  const std::string &asked() const { return arguments_.text("type"); }

  // One number a row without an axis of columns: classes, and lone columns unless a --type says
  // another.
  bool isFlat(const Group &group) const {
    bool isAsked = asked() == "i64" && !group.isLabel && columns_[group.columns[0]].numbers;
    return typeOf(group) == file_type::i64 && !isAsked;
  }

  bool normalises(const Group &group) const {
    return arguments_.has("normalise") && !group.isLabel && columns_[group.columns[0]].numbers;
  }

  static double deviationOf(const Column &column) {
    return column.squares > 0 ? std::sqrt(column.squares / column.count)
                              : 1; // a constant becomes zero
  }

  nlohmann::ordered_json factsOf(const Group &group) const {
    nlohmann::ordered_json facts = {{"made", "trainc-data csv"}};
    for (size_t i : group.columns) {
      facts["columns"].push_back(columns_[i].name);
      if (normalises(group)) {
        facts["mean"].push_back(columns_[i].mean);
        facts["deviation"].push_back(deviationOf(columns_[i]));
      }
    }
    if (const Column &first = columns_[group.columns[0]]; !first.numbers)
      for (auto &[text, count] : first.texts)
        facts["classes"].push_back(text);
    return facts;
  }

  template <typename T>
  T valueOf(const Group &group, size_t column, const std::string &field) const {
    const Column &from = columns_[column];
    if (!from.numbers)
      return static_cast<T>(from.classOf(field));
    if constexpr (std::is_integral_v<T>) {
      T whole = 0;
      fieldToWhole(field, whole);
      return whole;
    } else {
      double value = 0;
      fieldToNumber(field, value);
      return static_cast<T>(normalises(group) ? (value - from.mean) / deviationOf(from) : value);
    }
  }

  template <typename T>
  void append(SplitFile &file, const Group &group, const Row &row, int64_t line) {
    std::vector<T> values;
    for (size_t i : group.columns) {
      values.push_back(valueOf<T>(group, i, row[i]));
      if (std::is_floating_point_v<T> && !std::isfinite(static_cast<double>(values.back())))
        refuse({line, trimmed(row[i])}, columns_[i],
               format_text("has %s, which is beyond the numbers of %s\n  try: ",
                           trimmed(row[i]).c_str(), name_of(typeOf(group))) +
                   (typeOf(group) == file_type::f32 ? "--type f64, or " : "") +
                   dropOf(columns_[i]));
    }
    file.append(values.data());
  }

  void write(Progress &progress) {
    const std::string &folder = arguments_.text("output");
    makeFolder(folder);
    Split split(rows_, arguments_);
    Outputs outputs(arguments_.words);
    std::vector<std::unique_ptr<SplitFile>> files;
    for (const Group &group : groups_) {
      std::vector<int64_t> shape = {static_cast<int64_t>(group.columns.size())};
      if (isFlat(group))
        shape.clear();
      files.push_back(std::make_unique<SplitFile>(outputs, folder + "/" + group.name + ".npy",
                                                  typeOf(group), shape, split));
    }
    CsvReader reader(file_, delimiter_);
    Row row;
    if (!arguments_.has("no-header"))
      reader.read(row);
    while (reader.read(row)) {
      for (size_t i = 0; i < groups_.size(); ++i) {
        file_type type = typeOf(groups_[i]);
        if (type == file_type::i64)
          append<int64_t>(*files[i], groups_[i], row, reader.line());
        else if (type == file_type::f64)
          append<double>(*files[i], groups_[i], row, reader.line());
        else
          append<float>(*files[i], groups_[i], row, reader.line());
      }
      progress.at(file_.size() + reader.bytes());
    }
    for (size_t i = 0; i < groups_.size(); ++i)
      files[i]->finish(factsOf(groups_[i]));
    outputs.publish();
    for (const Group &group : groups_)
      printClasses(columns_[group.columns[0]]);
  }

  const Arguments &arguments_;
  input_file file_;
  char delimiter_ = ',';
  std::vector<Column> columns_;
  std::vector<Group> groups_;
  int64_t rows_ = 0;
};

} // namespace

const CommandRow &csvCommand() {
  static const CommandRow row = {
      "csv",
      ".npy from the columns of a table",
      "FILE",
      "Writes columns of a CSV file as arrays: FOLDER/x.npy [rows, columns] and FOLDER/labels.npy. "
      "A\n"
      "column of text becomes the numbers of its texts in sorted order, which the manifest lists. "
      "Empty\n"
      "fields, texts among numbers and whole numbers that the type would round are errors in every "
      "column\n"
      "that is not left out. The file is UTF-8.",
      "csv iris.csv --label species --validation-share 0.2 -o data",
      {
          {"output", "FOLDER", "", "where the arrays go"},
          {"label", "COLUMN", "",
           "to labels.npy: whole numbers and texts as classes (i64), else numbers"},
          {"input", "NAME=COLUMN,...", "",
           "columns of NAME.npy, instead of all in x.npy; repeat for every input", true},
          {"drop", "COLUMN", "", "leave it out", true},
          {"classes", "COLUMN", "", "its fields are names of classes, those that are numbers too",
           true},
          {"type", "TYPE", "auto",
           "of inputs that are numbers; auto: f32, and i64 for one column of whole numbers", false,
           "auto|f32|f64|i64"},
          OptionRow("normalise", "", "",
                    "subtract each column's mean and divide by its deviation, both of all rows")
              .refusedWhen("normalise type=i64", "its numbers are not whole ones",
                           "--type f32 or f64"),
          {"no-header", "", "", "the first line has values; columns are called 1, 2, ..."},
          {"delimiter", "C", ",", "between fields: a character, or tab"},
          {"validation-share", "X", "0",
           "random part of the rows, to files of their own: x-validation.npy"},
          {"seed", "N", "0", "of that choice"},
      },
      [](const Arguments &arguments) { CsvCommand(arguments).run(); },
  };
  return row;
}

} // namespace trainc::data
