// SPDX-License-Identifier: Apache-2.0
//
// Where one file of a model names another. Both may come from anywhere, so such a name leads into
// the folder of the first alone. Links are the user's own: who follows them decides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace trainc {

// Why the name is none of a file in the model's folder; "" where it is.
inline const char *problem_of_inner_path(std::string_view name) {
  constexpr const char *outside = "lies outside the model's folder";
  if (name.empty() || name[0] == '/' || name.find('\0') != name.npos)
    return outside;
  bool has_parent = false;
  int depth = 0;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    has_parent |= part == "..";
    depth += part == ".." ? -1 : !part.empty() && part != ".";
    if (depth < 0)
      return outside;
    begin = end + 1;
  }
  return has_parent ? "has '..' in it, which is not allowed" : "";
}

} // namespace trainc
