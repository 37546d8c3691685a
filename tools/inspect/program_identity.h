// SPDX-License-Identifier: Apache-2.0
//
// Which program a file is about. Plans, runs, profiles and dumps of IR say it, so that nothing
// shows two programs as one.
#pragma once

#include "runtime/plan/plan.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trainc::inspect {

struct ProgramIdentity {
  std::string source;             // the file or folder that says it
  std::string model;              // which two programs may share
  std::string fingerprint, graph; // as a run's configuration has them; empty: it does not say
};

/// `document` has the names of a plan's program, as those of runs and profiles do.
template <typename Json>
ProgramIdentity identityOf(const std::string &source, const Json &document) {
  auto text = [&](const char *name) {
    auto found = document.find(name);
    return found != document.end() && found->is_string() ? found->template get<std::string>() : "";
  };
  return {source, text("model"), text("fingerprint"), text("graph")};
}

/// Of the plan of trainc's output.
inline ProgramIdentity identityOf(const std::string &folder, const planned_program &program) {
  return {folder, program.model, program.fingerprint, program.graph};
}

/// Of the files of --dump-ir, which say the graph.
ProgramIdentity identityOfDumps(const std::vector<std::string> &files);

/// Throws `failure` (exit_data) where both say what they are about, and it is not the same.
void checkSameProgram(const ProgramIdentity &expected, const ProgramIdentity &found);

} // namespace trainc::inspect
