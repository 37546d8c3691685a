// SPDX-License-Identifier: Apache-2.0
//
// Sees, while JSON is read, a name that an object has twice: the library keeps the last value.
#pragma once

#include "runtime/files/bounded_json.h"
#include <map>
#include <set>
#include <string>

namespace trainc {

// The `see` of bounded_json; `twice` gets such a name.
template <typename Json> auto watch_names(std::string &twice) {
  std::map<int, std::set<std::string>> names; // of the object that is read, by depth
  return [names, &twice](int depth, typename Json::parse_event_t event, Json &value) mutable {
    if (event == Json::parse_event_t::object_start)
      names[depth + 1].clear();
    if (event == Json::parse_event_t::key &&
        !names[depth].insert(value.template get<std::string>()).second)
      twice = value.template get<std::string>();
  };
}

} // namespace trainc
