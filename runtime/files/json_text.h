// SPDX-License-Identifier: Apache-2.0
//
// Texts in JSON that the trainer writes a line at a time.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trainc {

// In quotes, with all that must be escaped.
inline std::string json_text(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace trainc
