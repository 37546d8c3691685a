// SPDX-License-Identifier: Apache-2.0
//
// What a page says of a run: its folder's files as one JSON object, its series thinned.
#pragma once

#include "tools/inspect/run_log.h"

#include <nlohmann/json.hpp>
#include <string>

namespace trainc::inspect {

/// Values with their steps, `{"steps": [...], "values": [...]}`: all of up to 2000, else the first,
/// the last, and the least and the greatest of each of 1000 equal spans of steps. So no spike is
/// lost.
nlohmann::ordered_json thinned(const std::vector<int64_t> &steps,
                               const std::vector<double> &values);

/// `log` is that of the folder `run`. What of the run cannot be read is a warning in the object.
nlohmann::ordered_json runReport(const std::string &run, const RunLog &log);

} // namespace trainc::inspect
