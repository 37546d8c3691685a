// SPDX-License-Identifier: Apache-2.0
//
// The output folder, complete or untouched: everything is made in a sibling
// folder and moved in place at the end. An interrupt removes what was begun, the next compilation
// what a kill left.
#pragma once

#include "compiler/report.h"
#include <string>

namespace trainc {

class OutputFolder {
public:
  /// Nothing is created before `begin`.
  explicit OutputFolder(std::string path);
  ~OutputFolder(); // removes what was not published

  /// Also removes what a compilation into the same folder left that was killed.
  llvm::LogicalResult begin(Report &report);
  /// Path of an entry while it is being made; `folder` entries are created.
  std::string entry(llvm::StringRef name) const;
  llvm::LogicalResult makeFolder(llvm::StringRef name, Report &report);
  llvm::LogicalResult writeText(llvm::StringRef name, llvm::StringRef text, Report &report);
  /// Moves the entries into the target folder, replacing those of an earlier compilation
  /// and leaving everything else there (checkpoints, logs) alone.
  llvm::LogicalResult publish(Report &report);

private:
  std::string target;
  std::string partial; // empty before begin and after publish
  int lock = -1;       // of `partial`, while this process lives
};

} // namespace trainc
