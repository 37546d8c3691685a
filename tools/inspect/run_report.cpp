// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/run_report.h"

#include "runtime/checkpoint/checkpoint_policy.h"
#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"
#include "runtime/files/run_files.h"
#include "runtime/run/log_line.h"
#include "tools/simulate/json_document.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace trainc::inspect {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr size_t kSpans = 1000; // of a thinned series: two points each
constexpr size_t kListed = 20;  // skipped steps by number, warnings of the trainer

/// The rows that a thinned series keeps: of a span the least and the greatest, the earlier first.
class Spans {
public:
  Spans(const std::vector<int64_t> &steps, const std::vector<double> &values, int64_t first,
        int64_t last)
      : steps(steps), values(values), first(double(first)),
        width((double(last) - double(first) + 1) / double(kSpans)) {}

  void add(size_t row) {
    const auto span = size_t((double(steps[row]) - first) / width);
    if (!isBegun || span != current)
      close();
    if (!isBegun) {
      current = span;
      least = greatest = row;
      isBegun = true;
    }
    least = values[row] < values[least] ? row : least;
    greatest = values[row] > values[greatest] ? row : greatest;
  }

  std::vector<size_t> rows() {
    close();
    return std::move(kept);
  }

private:
  void close() {
    if (isBegun)
      kept.push_back(std::min(least, greatest));
    if (isBegun && least != greatest)
      kept.push_back(std::max(least, greatest));
    isBegun = false;
  }

  const std::vector<int64_t> &steps;
  const std::vector<double> &values;
  const double first, width; // steps
  size_t current = 0, least = 0, greatest = 0;
  bool isBegun = false;
  std::vector<size_t> kept;
};

/// Of an option or another member as a person reads it.
std::string shownText(const json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_boolean())
    return value.get<bool>() ? "yes" : "no";
  if (!value.is_array())
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string text;
  for (const json &item : value)
    text += (text.empty() ? "" : ", ") + shownText(item);
  return text;
}

/// Whether a file of the data may have tokens: whole numbers, wider than the bytes of pictures,
/// that are no labels.
bool mayHaveTokens(const json &file) {
  constexpr const char *kTypes[] = {"int16", "uint16", "int32", "uint32", "int64", "uint64"};
  if (!file.is_object() || !file.contains("type") || !file.contains("input"))
    return false;
  const bool isLabel = file["input"] == "labels" || file["input"] == "loss_labels";
  return !isLabel && std::any_of(std::begin(kTypes), std::end(kTypes),
                                 [&](const char *type) { return file["type"] == type; });
}

bool isOfTokens(const json &options, const json &files) {
  return (options.is_object() && !options.value("tokens", json::array()).empty()) ||
         std::any_of(files.begin(), files.end(), mayHaveTokens);
}

/// The best of a result of evaluations.
std::optional<size_t> bestRowOf(const LoggedMember &result) {
  std::vector<double> values = result.values;
  if (more_is_better(result.name))
    for (double &value : values)
      value = -value;
  return leastRowOf(values);
}

/// Whether a process of this machine has the run's lock. Nothing is locked for it, so that no start
/// of the run is refused.
bool isLocked(const std::string &run) {
  struct stat lock;
  std::ifstream locks("/proc/locks"); // `1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF`
  if (stat(lock_of(run).c_str(), &lock) != 0)
    return false;
  const std::string inode = ":" + std::to_string(lock.st_ino);
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, process, file;
    words >> number >> kind >> mode >> access >> process >> file;
    if (kind == "FLOCK" && file.size() > inode.size() &&
        file.compare(file.size() - inode.size(), inode.size(), inode) == 0)
      return true;
  }
  return false;
}

class RunReport {
public:
  RunReport(const std::string &run, const RunLog &log) : run(run), log(log) {}

  ordered_json make() {
    report["run"] = run;
    addConfiguration();
    addState();
    addFigures();
    for (const LoggedMember &member : log.members)
      if (lastRowOf(member.values) && member.name != "skipped" && tells(member.name))
        report["series"][member.name] = thinned(log.steps, member.values);
    for (const char *name : {"summary", "machine"})
      if (const json &line = name == std::string("summary") ? log.summary : log.machine;
          line.is_object())
        report[name] = line;
    if (!log.memory.empty())
      report["memory"] = log.memory;
    addCheckpoints();
    addTrainerWarnings();
    addLogWarnings();
    report["warnings"] = warnings;
    return std::move(report);
  }

private:
  void addConfiguration() {
    const std::string path = configuration_of(run);
    if (!fs::exists(path)) {
      warnings.push_back(path + " is not there, so options, data and model are not known");
      return;
    }
    json document;
    try {
      document = simulate::readDocument(path);
    } catch (const failure &problem) {
      warnings.push_back(problem.message.substr(0, problem.message.find('\n')));
      return;
    }
    for (const char *name : {"model", "precision", "optimizer", "objective", "compiler",
                             "fingerprint", "graph", "ranks", "began_with", "last_start"})
      if (document.contains(name))
        report[name] =
            document[name].is_object() ? document[name] : json(shownText(document[name]));
    for (const char *name : {"data", "validation"})
      if (document.contains(name) && document[name].is_array())
        report[name] = document[name];
    if (document.contains("options") && document["options"].is_object())
      for (const auto &[name, value] : document["options"].items())
        report["options"][name] = shownText(value);
    if (document.contains("data"))
      hasPerplexity = isOfTokens(document.value("options", json()), document["data"]);
  }

  /// Exp of a loss is a perplexity where it is that of tokens. Of pictures it tells nothing.
  bool tells(const std::string &member) const {
    return hasPerplexity || member != std::string(held_out_prefix) + "perplexity";
  }

  /// `summary.steps` are those of the last start alone.
  void addState() {
    report["last_step"] = log.steps.back();
    if (!log.summary.is_object()) {
      report["state"] = isLocked(run) ? "running" : "not ended";
      if (report["state"] != "running")
        warnings.push_back("the log has no end: the run was killed, or it goes on elsewhere");
      return;
    }
    report["state"] = log.summary.contains("ended") ? shownText(log.summary["ended"]) : "done";
    if (log.summary.contains("exit_code") && log.summary.contains("reason"))
      warnings.push_back("the run ended with exit code " + shownText(log.summary["exit_code"]) +
                         ": " + shownText(log.summary["reason"]));
    if (log.summary.contains("steps") && log.summary["steps"].is_number_integer())
      if (const int64_t begun = log.steps.back() - log.summary["steps"].get<int64_t>(); begun > 0)
        report["resumed_after"] = begun;
  }

  ordered_json figureOf(const std::vector<double> &values, std::optional<size_t> row) const {
    return row ? ordered_json{{"step", log.steps[*row]}, {"value", values[*row]}} : ordered_json();
  }

  void addFigures() {
    const std::vector<double> losses = log.valuesOf("loss"),
                              heldOut = log.valuesOf("held_out_loss"),
                              milliseconds = log.valuesOf("milliseconds");
    ordered_json &figures = report["figures"] = ordered_json::object();
    figures["last_loss"] = figureOf(losses, lastRowOf(losses));
    figures["least_loss"] = figureOf(losses, leastRowOf(losses));
    figures["best_held_out_loss"] = figureOf(heldOut, leastRowOf(heldOut));
    for (const LoggedMember &member : log.members)
      if (member.name.rfind(held_out_prefix, 0) == 0 && member.name != "held_out_loss" &&
          tells(member.name))
        figures["best_metrics"][member.name] = figureOf(member.values, bestRowOf(member));
    double seconds = 0;
    for (double value : milliseconds)
      seconds += value > 0 ? value * 1e-3 : 0;
    figures["logged_steps"] = log.steps.size();
    figures["seconds_of_logged_steps"] = seconds;
    for (const char *unit : {"samples", "tokens"}) {
      const std::vector<double> rates = log.valuesOf(std::string(unit) + "_per_second");
      double done = 0, timed = 0;
      for (size_t row = 0; row < rates.size(); ++row)
        if (milliseconds[row] > 0 && rates[row] > 0) {
          done += rates[row] * milliseconds[row];
          timed += milliseconds[row];
        }
      if (timed > 0)
        figures[std::string(unit) + "_per_second"] = done / timed;
    }
  }

  void addCheckpoints() {
    std::vector<fs::path> folders;
    std::error_code error; // there may be no such folder
    for (const auto &entry : fs::directory_iterator(checkpoints_of(run), error))
      if (fs::exists(entry.path() / "manifest.json"))
        folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    for (const fs::path &folder : folders)
      try {
        const json manifest = simulate::readDocument(folder / "manifest.json");
        ordered_json checkpoint = {{"checkpoint", folder.filename().string()}};
        int64_t bytes = 0;
        for (const json &file : manifest.value("files", json::array()))
          bytes += file.value("bytes", int64_t(0));
        for (const char *name : {"fingerprint", "graph"}) // of a run without a configuration
          if (!report.contains(name) && manifest.contains(name))
            report[name] = shownText(manifest[name]);
        for (const char *name : {"step", "loss", "held_out_loss"})
          if (manifest.contains(name) && manifest[name].is_number())
            checkpoint[name] = manifest[name];
        checkpoint["bytes"] = bytes;
        report["checkpoints"].push_back(checkpoint);
      } catch (const std::exception &) { // of failures and of json
        warnings.push_back((folder / "manifest.json").string() + " cannot be read");
      }
  }

  /// Of the trainer, the last ones. What to try is a further line of a warning.
  void addTrainerWarnings() {
    const size_t count = log.warnings.size(), first = count > kListed ? count - kListed : 0;
    if (first > 0)
      warnings.push_back(format_text("%zu more warnings before these are in log.jsonl", first));
    for (size_t i = first; i < count; ++i) {
      const std::string text = shownText(log.warnings[i].value(warning_text, json()));
      warnings.push_back(text.substr(0, text.find('\n')) + " (step " +
                         shownText(log.warnings[i][warning_line]) + ")");
    }
  }

  void addLogWarnings() {
    if (!log.damaged.empty())
      warnings.push_back("log.jsonl: " + damageText(log));
    std::error_code error; // the folder may be gone
    for (const auto &entry : fs::directory_iterator(run, error))
      if (const std::string name = entry.path().filename(); name.rfind("log.jsonl.damaged", 0) == 0)
        warnings.push_back(name + " is there: a resume has found a damaged log and kept it");
    const std::vector<double> skipped = log.valuesOf("skipped");
    std::string numbers;
    size_t count = 0;
    for (size_t row = 0; row < skipped.size(); ++row)
      if (skipped[row] > 0 && ++count <= kListed)
        numbers += (numbers.empty() ? "" : ", ") + std::to_string(log.steps[row]);
    if (count > 0)
      warnings.push_back(format_text("%zu steps skipped, whose loss or gradient was not finite, or "
                                     "a spike: ",
                                     count) +
                         numbers + (count > kListed ? " and more" : ""));
  }

  const std::string &run;
  const RunLog &log;
  ordered_json report;
  bool hasPerplexity = true; // where the configuration does not say otherwise
  std::vector<std::string> warnings;
};

} // namespace

ordered_json thinned(const std::vector<int64_t> &steps, const std::vector<double> &values) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < values.size(); ++row)
    if (!std::isnan(values[row]))
      rows.push_back(row);
  if (rows.size() > 2 * kSpans) {
    Spans spans(steps, values, steps[rows.front()], steps[rows.back()]);
    for (size_t row : rows)
      spans.add(row);
    const size_t first = rows.front(), last = rows.back();
    rows = spans.rows();
    if (rows.front() != first)
      rows.insert(rows.begin(), first);
    if (rows.back() != last)
      rows.push_back(last);
  }
  ordered_json series = {{"steps", json::array()}, {"values", json::array()}};
  for (size_t row : rows) {
    series["steps"].push_back(steps[row]);
    series["values"].push_back(values[row]);
  }
  return series;
}

ordered_json runReport(const std::string &run, const RunLog &log) {
  return RunReport(run, log).make();
}

} // namespace trainc::inspect
