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
    for (const LoggedStep &step : log.steps)
      for (const char *name : {kLoss, kHeldOut})
        if (const double value = step.get(name, NAN); std::isfinite(value)) {
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
    for (const LoggedStep &step : log.steps)
      if (const double value = step.get(name, NAN); std::isfinite(value)) {
        sums[columnOf(step.step)] += value;
        counts[columnOf(step.step)] += 1;
        any = true;
      }
    for (size_t column = 0; column < sums.size(); ++column)
      if (counts[column] > 0)
        rows[rowOf(sums[column] / counts[column])][column] = character;
    return any;
  }

  size_t columnOf(int64_t step) const {
    const double first = double(log.steps.front().step), last = double(log.steps.back().step);
    return last > first
               ? size_t(std::lround((double(step) - first) / (last - first) * (columns - 1)))
               : 0;
  }

  size_t rowOf(double value) const {
    const double share = most > least ? (most - value) / (most - least) : 0.5;
    return size_t(std::lround(std::clamp(share, 0.0, 1.0) * (kRows - 1)));
  }

  std::string axis() const {
    const std::string first = std::to_string(log.steps.front().step),
                      last = "step " + std::to_string(log.steps.back().step);
    const int between = std::max(1, columns - int(first.size()) - int(last.size()));
    return std::string(size_t(labels) + 2, ' ') + first + std::string(size_t(between), ' ') + last +
           "\n";
  }

  const RunLog &log;
  double least = INFINITY, most = -INFINITY;
  int labels = 0, columns = 0; // characters
  std::vector<std::string> rows;
};

std::string lastLoss(const RunLog &log) {
  for (auto step = log.steps.rbegin(); step != log.steps.rend(); ++step)
    if (const double loss = step->get(kLoss, NAN); std::isfinite(loss))
      return format_text("last loss           %.6g at step %lld\n", loss,
                         static_cast<long long>(step->step));
  return "";
}

std::string bestHeldOut(const RunLog &log) {
  const LoggedStep *best = nullptr;
  for (const LoggedStep &step : log.steps)
    if (step.get(kHeldOut, INFINITY) < (best ? best->get(kHeldOut, INFINITY) : INFINITY))
      best = &step;
  return best ? format_text("best held-out loss  %.6g at step %lld\n", best->get(kHeldOut, NAN),
                            static_cast<long long>(best->step))
              : "";
}

std::string figures(const RunLog &log) {
  size_t skipped = 0, timed = 0;
  double milliseconds = 0;
  for (const LoggedStep &step : log.steps) {
    skipped += step.get("skipped", 0) > 0;
    timed += step.get("milliseconds", 0) > 0;
    milliseconds += std::max(0.0, step.get("milliseconds", 0));
  }
  std::string text =
      lastLoss(log) + bestHeldOut(log) +
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
