// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/memory_picture.h"

#include "passes/planning/plan_text.h"
#include "runtime/byte_text.h"
#include "tools/simulate/svg.h"

#include <algorithm>

namespace trainc::inspect {

using simulate::escaped;
using simulate::formatted;

namespace {

// Of the picture's units.
constexpr double width = 1200, height = 600, left = 90, top = 70, right = 40, below = 70;

constexpr const char *peakColour = "#d1603d", *otherColour = "#5b84b1", *lineColour = "#222222";

/// The first characters of UTF-8, and not a part of one.
std::string beginningOf(const std::string &text, size_t bytes) {
  if (bytes >= text.size())
    return text;
  while (bytes > 0 && (text[bytes] & 0xC0) == 0x80)
    --bytes;
  return text.substr(0, bytes);
}

class Picture {
public:
  explicit Picture(const planned_entry &entry) : entry(entry) {
    for (const planned_tensor &tensor : entry.tensors) {
      if (tensor.arena != "activations")
        continue;
      tensors.push_back(&tensor);
      steps = std::max(steps, tensor.last + 1.0);
      arena = std::max(arena, double(tensor.offset) + double(tensor.bytes));
    }
  }

  std::string draw() {
    text = formatted("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' "
                     "font-family='sans-serif' font-size='11'>\n"
                     "<rect width='100%%' height='100%%' fill='white'/>\n"
                     "<text x='%.0f' y='22' font-size='14'>",
                     left + width + right, top + height + below, left) +
           escaped(titleOf(entry)) + "</text>\n";
    drawAxes();
    for (const planned_tensor *tensor : tensors)
      drawTensor(*tensor);
    drawLines();
    text += simulate::legend(left, top + height + 50,
                             {{peakColour, "tensors alive at the peak"},
                              {otherColour, "other tensors of the activations arena"}});
    return text + "</svg>\n";
  }

private:
  double xOf(double step) const { return left + width * step / steps; }
  double yOf(double bytes) const { return top + height - height * bytes / arena; }

  void line(double x1, double y1, double x2, double y2, const char *look) {
    text += formatted("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s/>\n", x1, y1, x2, y2, look);
  }

  void drawAxes() {
    for (double bytes : simulate::roundByteTicks(arena, 10)) {
      if (bytes > 0 && bytes < 1)
        continue;
      line(left - 5, yOf(bytes), left + width, yOf(bytes), "stroke='#dddddd'");
      text += formatted("<text text-anchor='end' x='%.1f' y='%.1f'>", left - 9, yOf(bytes) + 4) +
              simulate::byteTickText(bytes) + "</text>\n";
    }
    const double bottom = top + height;
    for (double step : simulate::roundTicks(steps - 1, 10)) {
      if (step > 0 && step < 1)
        continue;
      const double x = xOf(step + 0.5); // the middle of the step
      line(x, bottom, x, bottom + 5, "stroke='#555555'");
      text += formatted("<text text-anchor='middle' x='%.1f' y='%.1f'>%s%.0f</text>\n", x,
                        bottom + 18, step > 0 ? "" : "step ", step);
    }
    line(left, top, left, bottom, "stroke='#555555'");
    line(left, bottom, left + width, bottom, "stroke='#555555'");
  }

  void drawTensor(const planned_tensor &tensor) {
    const double x = xOf(tensor.first), w = std::max(1.0, xOf(tensor.last + 1.0) - x);
    const double h = height * double(tensor.bytes) / arena,
                 y = yOf(double(tensor.offset) + double(tensor.bytes));
    text += formatted("<rect x='%.1f' y='%.1f' width='%.1f' height='%.2f' fill='%s' "
                      "stroke='white' stroke-width='0.4'><title>",
                      x, y, w, h, tensor.is_at_peak ? peakColour : otherColour) +
            escaped(tensor.name) + ": " + byte_text(tensor.bytes) +
            formatted(", steps %d to %d</title></rect>\n", tensor.first, tensor.last);
    if (h > 12 && w > 60)
      text += formatted("<text x='%.1f' y='%.1f' fill='white'>", x + 3, y + h / 2 + 4) +
              escaped(beginningOf(tensor.name, size_t(w / 7))) + "</text>\n";
  }

  /// Of tensors that are alive at the peak: bytes that several of them share count once.
  double bytesAtPeak() const {
    std::vector<std::pair<int64_t, int64_t>> pieces; // begin, end
    for (const planned_tensor *tensor : tensors)
      if (tensor->is_at_peak)
        pieces.emplace_back(tensor->offset, tensor->offset + tensor->bytes);
    std::sort(pieces.begin(), pieces.end());
    int64_t bytes = 0, end = 0;
    for (auto [from, to] : pieces) {
      bytes += std::max<int64_t>(0, to - std::max(from, end));
      end = std::max(end, to);
    }
    return double(bytes);
  }

  void drawLines() {
    const bool any = std::any_of(tensors.begin(), tensors.end(),
                                 [](const planned_tensor *tensor) { return tensor->is_at_peak; });
    const double peak = bytesAtPeak();
    const std::string look =
        formatted("stroke='%s' stroke-width='1.5' stroke-dasharray='6 4'", lineColour);
    line(left - 5, top, left + width, top, look.c_str());
    std::string label = "arena: " + byte_text(int64_t(arena));
    if (any) {
      int step = 0; // the first at which all of them are alive
      for (const planned_tensor *tensor : tensors)
        step = tensor->is_at_peak ? std::max(step, tensor->first) : step;
      const double x = xOf(step + 0.5);
      line(x, top - 8, x, top + height, look.c_str());
      label = "peak: " + byte_text(int64_t(peak)) + " alive at step " + std::to_string(step) +
              "; " + label;
    }
    text += formatted("<text x='%.1f' y='%.1f' font-weight='bold' fill='%s'>", left, top - 12,
                      lineColour) +
            escaped(label) + "</text>\n";
  }

  const planned_entry &entry;
  std::vector<const planned_tensor *> tensors; // of the arena
  double steps = 1, arena = 1;                 // the arena's bytes
  std::string text;
};

} // namespace

std::string memoryPicture(const planned_entry &entry) { return Picture(entry).draw(); }

} // namespace trainc::inspect
