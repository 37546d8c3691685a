// SPDX-License-Identifier: Apache-2.0
//
// JSON that may come from anywhere, no deeper than its reader expects: what the library does with a
// value is recursive, and what nests too deep would end the program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trainc {

// The value that the text says; a discarded one (`is_discarded`) where it is not JSON or nests
// deeper than `deepest`: 1 is an object of plain values and lists of them. `see(depth, event,
// value)` is called for every name, and where an object or a list begins.
template <typename Json = nlohmann::json, typename See>
Json bounded_json(const std::string &text, int deepest, See see) {
  bool too_deep = false;
  // Keeps nothing, and what is kept is read without it: else the library would look, at the end of
  // each object, through all that are beside it.
  auto watch = [&](int depth, typename Json::parse_event_t event, Json &value) {
    too_deep |= depth > deepest;
    see(depth, event, value);
    return false;
  };
  const Json looked_at = Json::parse(text, watch, /*allow_exceptions=*/false);
  return too_deep || looked_at.is_discarded() ? Json(Json::value_t::discarded)
                                              : Json::parse(text, nullptr, false);
}

template <typename Json = nlohmann::json> Json bounded_json(const std::string &text, int deepest) {
  return bounded_json<Json>(text, deepest, [](int, typename Json::parse_event_t, Json &) {});
}

} // namespace trainc
