// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/svg.h"

#include "runtime/byte_text.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace trainc::simulate {

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
    result += c == '<'            ? "&lt;"
              : c == '>'          ? "&gt;"
              : c == '&'          ? "&amp;"
              : c >= 0 && c < ' ' ? "?"
                                  : std::string(1, c);
  return result;
}

std::vector<double> roundTicks(double most, int count) {
  std::vector<double> ticks = {0};
  if (!(most > 0))
    return ticks;
  double step = std::pow(10, std::floor(std::log10(most / count)));
  for (double factor : {2.0, 2.5, 2.0}) // 1, 2, 5, 10
    if (step * count < most)
      step *= factor;
  for (int i = 1; i * step <= most * (1 + 1e-9); ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::vector<double> roundByteTicks(double most, int count) {
  const double unit = unit_of(most).bytes;
  std::vector<double> ticks = roundTicks(most / unit, count);
  for (double &tick : ticks)
    tick *= unit;
  return ticks;
}

std::string byteTickText(double bytes) {
  const byte_unit unit = unit_of(bytes);
  return bytes == 0 ? "0" : formatted("%.4g %s", bytes / unit.bytes, unit.name);
}

std::string legend(double x, double y,
                   const std::vector<std::pair<std::string, std::string>> &colours) {
  constexpr double side = 11, gap = 5, character = 6.2, between = 18; // of the picture's units
  std::string text;
  for (const auto &[colour, meaning] : colours) {
    text += formatted("<rect x='%.1f' y='%.1f' width='%.0f' height='%.0f' fill='%s'/>"
                      "<text x='%.1f' y='%.1f'>",
                      x, y - side + 2, side, side, colour.c_str(), x + side + gap, y) +
            escaped(meaning) + "</text>\n";
    x += side + gap + character * double(meaning.size()) + between;
  }
  return text;
}

} // namespace trainc::simulate
