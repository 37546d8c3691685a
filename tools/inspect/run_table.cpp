// SPDX-License-Identifier: Apache-2.0
//
// The numbers are those of the page of a run (run_report.h): each column is a place in it.
#include "tools/inspect/run_table.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"
#include "tools/inspect/run_report.h"
#include "tools/inspect/table.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

namespace trainc::inspect {

using nlohmann::ordered_json;

namespace {

using Place = ordered_json::json_pointer;

constexpr const char *kNone = "-";

std::string textAt(const ordered_json &run, const Place &place) {
  if (!run.contains(place) || run.at(place).is_null() || run.at(place) == "")
    return kNone;
  const ordered_json &value = run.at(place);
  if (value.is_number_float())
    return format_text("%.6g", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// `best top 5 accuracy` of `held_out_top_5_accuracy`.
std::string titleOf(const std::string &metric) {
  std::string title = "best " + metric.substr(std::string_view(held_out_prefix).size());
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

class RunTable {
public:
  explicit RunTable(const std::vector<ordered_json> &runs) : runs(runs) {}

  void print(llvm::raw_ostream &stream) {
    add("run", Place("/run"));
    for (const char *name : {"model", "precision", "optimizer", "objective", "ranks"})
      addWhereDifferent(name, Place() / name);
    const Place options("/options"), figures("/figures"), metrics("/figures/best_metrics");
    for (const std::string &name : namesAt(options))
      addWhereDifferent(name, options / name);
    add("last loss", figures / "last_loss" / "value");
    add("best loss", figures / "least_loss" / "value");
    addWhereThere("best held-out loss", figures / "best_held_out_loss" / "value");
    for (const std::string &name : namesAt(metrics))
      addWhereThere(titleOf(name), metrics / name / "value");
    add("step", Place("/last_step"));
    add("state", Place("/state"));
    printColumns(stream);
  }

private:
  using Column = std::vector<std::string>; // its title, and a text for each run

  /// Names that any run has there, in their order.
  std::vector<std::string> namesAt(const Place &place) const {
    std::vector<std::string> names;
    for (const ordered_json &run : runs)
      if (run.contains(place))
        for (const auto &[name, value] : run.at(place).items())
          if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    return names;
  }

  Column columnOf(const std::string &title, const Place &place) const {
    Column column = {title};
    for (const ordered_json &run : runs)
      column.push_back(textAt(run, place));
    return column;
  }

  void add(const std::string &title, const Place &place) {
    columns.push_back(columnOf(title, place));
  }

  void addWhereDifferent(const std::string &title, const Place &place) {
    Column column = columnOf(title, place);
    if (std::adjacent_find(column.begin() + 1, column.end(), std::not_equal_to<>()) != column.end())
      columns.push_back(std::move(column));
  }

  void addWhereThere(const std::string &title, const Place &place) {
    Column column = columnOf(title, place);
    if (std::any_of(column.begin() + 1, column.end(),
                    [](const std::string &text) { return text != kNone; }))
      columns.push_back(std::move(column));
  }

  void printColumns(llvm::raw_ostream &stream) const {
    Table table;
    for (size_t row = 0; row <= runs.size(); ++row) {
      std::vector<std::string> texts;
      for (const Column &column : columns)
        texts.push_back(column[row]);
      table.add(std::move(texts));
    }
    table.print(stream, 0);
  }

  const std::vector<ordered_json> &runs; // as runReport has them
  std::vector<Column> columns;
};

} // namespace

void printRunTable(const std::vector<std::string> &runs, llvm::raw_ostream &stream,
                   llvm::raw_ostream &warnings) {
  std::vector<ordered_json> reports;
  std::optional<failure> unread;
  for (const std::string &run : runs)
    try {
      const RunLog log = readRunLog(run);
      if (!log.damaged.empty())
        warnings << log.path << ": warning: " << damageText(log) << "\n";
      reports.push_back(runReport(run, log));
    } catch (const failure &problem) {
      unread = problem;
      warnings << "warning: " << problem.message.substr(0, problem.message.find('\n'))
               << "; left out\n";
    }
  if (reports.empty())
    throw failure(*unread);
  RunTable(reports).print(stream);
}

} // namespace trainc::inspect
