// SPDX-License-Identifier: Apache-2.0
//
// A column stands for the steps that fall into it: its mark is at the mean of their losses.
#include "tools/inspect/loss_plot.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cmath>

namespace trainc::inspect {

namespace {

constexpr int kRows = 15, kLeast = 40;
constexpr const char *kLoss = "loss", *kHeldOut = "held_out_loss";

class Plot {
public:
  Plot(const RunLog &log, int width) : log(log) {
    for (const char *name : {kLoss, kHeldOut})
      for (double value : log.valuesOf(name))
        if (std::isfinite(value)) {
          least = std::min(least, value);
          most = std::max(most, value);
        }
    for (double value : {least, most, (least + most) / 2})
      labels = std::max(labels, int(numberText(value).size()));
    columns = std::max(width, kLeast) - labels - 2;
    rows.assign(kRows, std::string(size_t(columns), ' '));
  }

  std::string draw() {
    if (!(least <= most))
      return "no loss is a finite number\n";
    mark(kLoss, '*');
    const bool isHeldOut = mark(kHeldOut, 'o');
    std::string text = std::string("* loss") + (isHeldOut ? "   o held-out loss" : "") + "\n";
    for (int row = 0; row < kRows; ++row)
      text += labelOf(row) + " |" + trimmed(rows[size_t(row)]) + "\n";
    text += std::string(size_t(labels), ' ') + " +" + std::string(size_t(columns), '-') + "\n";
    return text + axis();
  }

private:
  static std::string numberText(double value) { return format_text("%.4g", value); }
  static std::string trimmed(const std::string &text) {
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

  std::string labelOf(int row) const {
    const bool isLabelled = row == 0 || row == kRows / 2 || row == kRows - 1;
    const double value = most - (most - least) * row / (kRows - 1);
    return format_text("%*s", labels, isLabelled ? numberText(value).c_str() : "");
  }

  /// Whether there is anything to mark.
  bool mark(const char *name, char character) {
    std::vector<double> sums(size_t(columns), 0), counts(size_t(columns), 0);
    bool any = false;
    const std::vector<double> values = log.valuesOf(name);
    for (size_t row = 0; row < values.size(); ++row)
      if (std::isfinite(values[row])) {
        sums[columnOf(log.steps[row])] += values[row];
        counts[columnOf(log.steps[row])] += 1;
        any = true;
      }
    for (size_t column = 0; column < sums.size(); ++column)
      if (counts[column] > 0)
        rows[rowOf(sums[column] / counts[column])][column] = character;
    return any;
  }

  size_t columnOf(int64_t step) const {
    const double first = double(log.steps.front()), last = double(log.steps.back());
    return last > first
               ? size_t(std::lround((double(step) - first) / (last - first) * (columns - 1)))
               : 0;
  }

  size_t rowOf(double value) const {
    const double share = most > least ? (most - value) / (most - least) : 0.5;
    return size_t(std::lround(std::clamp(share, 0.0, 1.0) * (kRows - 1)));
  }

  std::string axis() const {
    const std::string first = std::to_string(log.steps.front()),
                      last = "step " + std::to_string(log.steps.back());
    const int between = std::max(1, columns - int(first.size()) - int(last.size()));
    return std::string(size_t(labels) + 2, ' ') + first + std::string(size_t(between), ' ') + last +
           "\n";
  }

  const RunLog &log;
  double least = INFINITY, most = -INFINITY;
  int labels = 0, columns = 0; // characters
  std::vector<std::string> rows;
};

/// A loss, where the log has one.
std::string figureOf(const RunLog &log, const char *title, const char *name,
                     std::optional<size_t> (*rowOf)(const std::vector<double> &)) {
  const std::vector<double> values = log.valuesOf(name);
  const std::optional<size_t> row = rowOf(values);
  return row ? format_text("%-19s %.6g at step %lld\n", title, values[*row],
                           static_cast<long long>(log.steps[*row]))
             : "";
}

std::string figures(const RunLog &log) {
  size_t skipped = 0, timed = 0;
  double milliseconds = 0;
  for (double value : log.valuesOf("skipped"))
    skipped += value > 0;
  for (double value : log.valuesOf("milliseconds")) {
    timed += value > 0;
    milliseconds += value > 0 ? value : 0;
  }
  std::string text =
      figureOf(log, "last loss", kLoss, lastRowOf) +
      figureOf(log, "best held-out loss", kHeldOut, leastRowOf) +
      format_text("skipped steps       %zu of %zu in the log\n", skipped, log.steps.size());
  if (milliseconds > 0)
    text += format_text("steps/s             %.4g\n", double(timed) / milliseconds * 1e3);
  return text;
}

} // namespace

std::string lossPlot(const RunLog &log, int width) {
  return Plot(log, width).draw() + "\n" + figures(log);
}

} // namespace trainc::inspect
