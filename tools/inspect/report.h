// SPDX-License-Identifier: Apache-2.0
//
// Runs as one page for a browser: page/page.html with what is known of the runs.
#pragma once

#include <string>
#include <vector>

namespace trainc::inspect {

struct ReportSources {
  std::vector<std::string> runs; // folders
  std::string trainer, profile;  // an output folder, a file of `trainer profile`; empty: none
};

struct Report {
  std::string page;
  std::vector<std::string> warnings; // of what was read
};

/// Throws `failure` (exit_data) where a run's log or another named file cannot be read, or is of
/// another program.
Report reportOf(const ReportSources &sources);

} // namespace trainc::inspect
