// SPDX-License-Identifier: Apache-2.0
//
// What an output folder knows of the names in dumps, as a page has it: nodes of the model's file,
// steps of the plan with their lines of the source and times, and tensors with their places.
#pragma once

#include "runtime/plan/plan.h"
#include "tools/inspect/explored_passes.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trainc::inspect {

/// Without a plan, names and labels alone.
void addNames(const ExploredPasses &passes, nlohmann::ordered_json &document);

/// Adds `subjects`, `nodes`, `steps`, `tensors`, and of the last pass the step of each operation;
/// `source`, where the folder has one. `profile`: a file, or empty. Throws `failure` (exit_data).
void addProgram(const std::string &folder, const plan &program, const std::string &profile,
                const ExploredPasses &passes, nlohmann::ordered_json &document);

} // namespace trainc::inspect
