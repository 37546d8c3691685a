// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/schedule_picture.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace trainc::simulate {

using planning::Action;
using planning::ActionKind;

namespace {

constexpr double width = 1200, row = 26, margin = 40, labels = 190; // of the picture's units

std::string formatted(const char *pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

const char *colourOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::forward:
    return "#5b84b1";
  case ActionKind::backward:
  case ActionKind::inputGradient:
    return "#d1603d";
  case ActionKind::weightGradient:
    return "#e0a458";
  case ActionKind::update:
    return "#5c946e";
  default:
    return nullptr; // what takes none of the rank's time
  }
}

int slotsOf(const planning::Schedule &schedule, int stage) {
  int slots = 0;
  for (int chunk = stage; chunk < schedule.pipeline.chunks(); chunk += schedule.pipeline.stages)
    slots += schedule.stashSlots[size_t(chunk)];
  return slots;
}

} // namespace

std::string schedulePicture(const planning::Schedule &schedule, const planning::StepTimes &times,
                            const std::string &title, const std::string &unit) {
  const int stages = schedule.pipeline.stages;
  const double height = 2 * margin + row * stages, scale = width / std::max(times.seconds, 1e-300);
  std::string text = formatted("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' "
                               "font-family='sans-serif' font-size='11'>\n",
                               width + labels + 2 * margin, height + margin);
  text += formatted("<text x='%.0f' y='20' font-size='14'>", margin) + escaped(title) + "</text>\n";
  for (int stage = 0; stage < stages; ++stage) {
    const double y = margin + row * stage;
    text += formatted("<text x='%.0f' y='%.1f'>stage %d: idle %.1f %%, slots %d</text>\n", margin,
                      y + row / 2 + 4, stage,
                      100 * (1 - times.computing[size_t(stage)] / std::max(times.seconds, 1e-300)),
                      slotsOf(schedule, stage));
    text += formatted("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='#eeeeee'/>\n",
                      margin + labels, y, width, row - 2);
    const std::vector<Action> &actions = schedule.actions[size_t(stage)];
    for (size_t i = 0; i < actions.size(); ++i) {
      const char *colour = colourOf(actions[i].kind);
      const planning::Span &span = times.spans[size_t(stage)][i];
      const double x = margin + labels + span.start * scale, w = (span.end - span.start) * scale;
      if (!colour || w <= 0)
        continue;
      text += formatted("<rect x='%.2f' y='%.1f' width='%.2f' height='%.1f' fill='%s' "
                        "stroke='white' stroke-width='0.4'><title>",
                        x, y, w, row - 2, colour) +
              escaped(planning::describe(actions[i])) +
              formatted(": %.6g to %.6g %s</title></rect>\n", span.start, span.end, unit.c_str());
      if (w > 14 && actions[i].microBatch >= 0)
        text += formatted("<text x='%.2f' y='%.1f' fill='white'>%d</text>\n", x + 3,
                          y + row / 2 + 3, actions[i].microBatch);
    }
  }
  text += formatted("<text x='%.0f' y='%.0f'>0</text><text text-anchor='end' x='%.0f' "
                    "y='%.0f'>%.6g %s; forward blue, backward red, weight gradient yellow, update "
                    "green, idle grey; numbers are micro-batches</text>\n</svg>\n",
                    margin + labels, height, margin + labels + width, height, times.seconds,
                    unit.c_str());
  return text;
}

} // namespace trainc::simulate
