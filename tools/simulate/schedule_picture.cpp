// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/schedule_picture.h"

#include "tools/simulate/svg.h"

#include <algorithm>
#include <set>

namespace trainc::simulate {

using planning::Action;
using planning::ActionKind;
using planning::Span;

namespace {

constexpr double width = 1200, row = 26, margin = 40, labels = 270; // of the picture's units

constexpr const char *idleColour = "#e4e4e4", *exchangeColour = "#8e5ea2", *copyColour = "#4aa5a0",
                     *restColour = "#bdbdbd";

struct Look {
  const char *colour = nullptr; // none of what takes none of the rank's time, or is drawn as a part
  const char *meaning = nullptr;
};

Look lookOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::forward:
    return {"#5b84b1", "forward"};
  case ActionKind::backward:
    return {"#d1603d", "backward"};
  case ActionKind::inputGradient:
    return {"#d1603d", "input gradient"};
  case ActionKind::weightGradient:
    return {"#e0a458", "weight gradient"};
  case ActionKind::update:
    return {"#5c946e", "update"};
  default:
    return {};
  }
}

double secondsOf(const std::vector<Span> &spans) {
  double seconds = 0;
  for (const Span &span : spans)
    seconds += span.end - span.start;
  return seconds;
}

class Picture {
public:
  Picture(const planning::Schedule &schedule, const planning::StepTimes &times, TimeAxis axis)
      : schedule(schedule), times(times), axis(axis), stages(schedule.pipeline.stages),
        scale(width / std::max(times.seconds, 1e-300)) {}

  std::string draw(const std::string &title) {
    const double bottom = margin + row * stages;
    text = formatted("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' "
                     "font-family='sans-serif' font-size='11'>\n"
                     "<rect width='100%%' height='100%%' fill='white'/>\n",
                     width + labels + 2 * margin, bottom + 60);
    text +=
        formatted("<text x='%.0f' y='20' font-size='14'>", margin) + escaped(title) + "</text>\n";
    for (int stage = 0; stage < stages; ++stage)
      drawStage(stage, margin + row * stage);
    drawAxis(bottom);
    text += legend(margin + labels, bottom + 48, meanings());
    return text + "</svg>\n";
  }

private:
  std::string timeText(double time) const {
    if (axis == TimeAxis::bytesOfTraffic)
      return byteTickText(time);
    const char *units[] = {"s", "ms", "us"};
    int unit = 0;
    for (; time > 0 && time < 1 && unit < 2; ++unit)
      time *= 1000;
    return formatted("%.4g %s", time, units[unit]);
  }

  void box(const Span &span, double y, const char *colour, const std::string &what) {
    text += formatted("<rect x='%.2f' y='%.1f' width='%.2f' height='%.1f' fill='%s' "
                      "stroke='white' stroke-width='0.4'><title>",
                      margin + labels + span.start * scale, y, (span.end - span.start) * scale,
                      row - 2, colour) +
            escaped(what) + ": " + timeText(span.start) + " to " + timeText(span.end) +
            "</title></rect>\n";
  }

  void drawStage(int stage, double y) {
    text += formatted("<text x='%.0f' y='%.1f'>", margin, y + row / 2 + 4) + labelOf(stage) +
            "</text>\n";
    text += formatted("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='%s'/>\n",
                      margin + labels, y, width, row - 2, idleColour);
    const std::vector<Action> &actions = schedule.actions[size_t(stage)];
    for (size_t i = 0; i < actions.size(); ++i) {
      const char *colour = lookOf(actions[i].kind).colour;
      const Span &span = times.spans[size_t(stage)][i];
      if (!colour || span.end <= span.start)
        continue;
      box(span, y, colour, planning::describe(actions[i]));
      drawn.insert(actions[i].kind);
      if ((span.end - span.start) * scale > 14 && actions[i].microBatch >= 0)
        text += formatted("<text x='%.2f' y='%.1f' fill='white'>%d</text>\n",
                          margin + labels + span.start * scale + 3, y + row / 2 + 3,
                          actions[i].microBatch);
    }
    // Over the boxes: a function in which buckets are exchanged computes nothing meanwhile.
    for (const Span &span : times.exchanges[size_t(stage)])
      box(span, y, exchangeColour, "exchange");
    for (const Span &span : times.copies[size_t(stage)])
      box(span, y, copyColour, "copies a message");
    if (times.rest > 0)
      box({times.seconds - times.rest, times.seconds}, y, restColour, "rest of the step");
  }

  std::string labelOf(int stage) const {
    const double percent = 100 / std::max(times.seconds, 1e-300);
    const double exchange = percent * secondsOf(times.exchanges[size_t(stage)]),
                 copies = percent * secondsOf(times.copies[size_t(stage)]),
                 computing = percent * times.computing[size_t(stage)];
    std::string label =
        formatted("stage %d: idle %.1f %%", stage,
                  std::max(0.0, 100 - computing - exchange - copies - percent * times.rest));
    if (exchange > 0)
      label += formatted(", exchange %.1f %%", exchange);
    int slots = 0;
    for (int chunk = stage; chunk < schedule.pipeline.chunks(); chunk += stages)
      slots += schedule.stashSlots[size_t(chunk)];
    return label + formatted(", slots %d", slots);
  }

  void drawAxis(double y) {
    for (double tick : axis == TimeAxis::bytesOfTraffic ? roundByteTicks(times.seconds, 8)
                                                        : roundTicks(times.seconds, 8)) {
      const double x = margin + labels + tick * scale;
      text += formatted("<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='#555555'/>"
                        "<text text-anchor='middle' x='%.1f' y='%.1f'>",
                        x, x, y, y + 5, x, y + 18) +
              timeText(tick) + "</text>\n";
    }
    text += formatted("<text x='%.0f' y='%.1f'>step: ", margin, y + 18) + timeText(times.seconds) +
            (axis == TimeAxis::bytesOfTraffic ? " of traffic" : "") + "</text>\n";
  }

  /// Of the colours that are there.
  std::vector<std::pair<std::string, std::string>> meanings() const {
    auto are = [](const std::vector<std::vector<Span>> &spans) {
      return std::any_of(spans.begin(), spans.end(), [](const auto &of) { return !of.empty(); });
    };
    std::vector<std::pair<std::string, std::string>> result;
    for (ActionKind kind : drawn)
      result.emplace_back(lookOf(kind).colour, lookOf(kind).meaning);
    if (are(times.exchanges))
      result.emplace_back(exchangeColour, "exchange of gradients and totals");
    if (are(times.copies))
      result.emplace_back(copyColour, "copies messages");
    if (times.rest > 0)
      result.emplace_back(restColour, "rest of the step");
    result.emplace_back(idleColour, "idle");
    result.emplace_back("none", "numbers are micro-batches");
    return result;
  }

  const planning::Schedule &schedule;
  const planning::StepTimes &times;
  const TimeAxis axis;
  const int stages;
  const double scale;
  std::set<ActionKind> drawn;
  std::string text;
};

} // namespace

std::string schedulePicture(const planning::Schedule &schedule, const planning::StepTimes &times,
                            const std::string &title, TimeAxis axis) {
  return Picture(schedule, times, axis).draw(title);
}

} // namespace trainc::simulate
