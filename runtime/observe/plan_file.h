// SPDX-License-Identifier: Apache-2.0
//
// The files of plan/ beside a trainer, as JSON.
#pragma once

#include "runtime/files/bounded_json.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace trainc {

// Nothing where the file cannot be read; a discarded value where it is not JSON as plans are.
inline std::optional<nlohmann::json> read_plan_file(const std::string &path) {
  constexpr int deepest = 6; // entries, tensors, shape
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    return std::nullopt;
  return bounded_json(text, deepest);
}

} // namespace trainc
