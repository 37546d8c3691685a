// SPDX-License-Identifier: Apache-2.0
//
// Sizes for people, in the units that options take: the trainer's messages, the compiler's and the
// pictures of tools/simulate have one form.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace trainc {

struct byte_unit {
  const char *name;
  double bytes;
};

// The largest of them that is not above `bytes`.
inline byte_unit unit_of(double bytes) {
  for (byte_unit unit :
       {byte_unit{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}})
    if (std::fabs(bytes) >= unit.bytes)
      return unit;
  return {"bytes", 1};
}

// "474.72 MiB"; "12 bytes".
inline std::string byte_text(int64_t bytes) {
  if (bytes == 1)
    return "1 byte";
  const byte_unit unit = unit_of(static_cast<double>(bytes));
  char text[48];
  snprintf(text, sizeof text, unit.bytes == 1 ? "%.0f %s" : "%.2f %s",
           static_cast<double>(bytes) / unit.bytes, unit.name);
  return text;
}

} // namespace trainc
