// SPDX-License-Identifier: Apache-2.0
//
// A compilation from pass to pass as one page for a browser: page/explorer.html with the operations
// of all dumps, and what the output folder knows of the names in them.
#pragma once

#include <string>
#include <vector>

namespace trainc::inspect {

struct ExplorerSources {
  std::string folder;  // of trainc's output; or one of --dump-ir alone
  std::string dumps;   // of --dump-ir; empty: the output's folder `ir`
  std::string profile; // a file of `trainer profile`; empty: none

  /// The files that the page is made from.
  std::vector<std::string> files() const;
};

/// Throws `failure` (exit_data) where there are no dumps, or a file cannot be read or is of another
/// program.
std::string explorerPage(const ExplorerSources &sources);

} // namespace trainc::inspect
