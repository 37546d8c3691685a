// SPDX-License-Identifier: Apache-2.0
//
// What titles of computations and names of tensors say: `gradient of recomputed h.0.mlp.act`.
#pragma once

#include <string>
#include <string_view>

namespace trainc {

// Of what stands before the name itself.
inline size_t length_of_prefix(std::string_view title) {
  size_t length = 0;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view prefix : {"gradient of ", "recomputed "})
      if (title.substr(length, prefix.size()) == prefix) {
        length += prefix.size();
        found = true;
      }
  }
  return length;
}

inline std::string name_in(std::string_view title) {
  return std::string(title.substr(length_of_prefix(title)));
}

// The path of the module that a name or title is in; empty: none.
inline std::string module_of(std::string_view title) {
  const std::string name = name_in(title);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

} // namespace trainc
