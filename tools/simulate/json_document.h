// SPDX-License-Identifier: Apache-2.0
//
// JSON files of runs and profiles, and those written by hand. They may be damaged.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trainc::simulate {

/// A document, an object. Throws `failure` (exit_data) where the file cannot be read or is none.
nlohmann::json readDocument(const std::string &path);

} // namespace trainc::simulate
