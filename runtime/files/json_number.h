// SPDX-License-Identifier: Apache-2.0
//
// Numbers in JSON that the trainer writes a line at a time.
#pragma once

#include <charconv>
#include <cmath>
#include <cstring>

namespace trainc {

// Shortest decimal text that reads back as the same number; null where JSON has
// none. `text` has at least 32 bytes.
inline const char *json_number(char *text, double value) {
  if (!std::isfinite(value))
    return static_cast<char *>(memcpy(text, "null", sizeof "null"));
  *std::to_chars(text, text + 31, value).ptr = '\0';
  return text;
}

} // namespace trainc
