// SPDX-License-Identifier: Apache-2.0
//
// The operations of a file of `trainc --dump-ir`. The file is read as text: it is what an editor
// shows, and lines are what is looked for.
#pragma once

#include "tools/inspect/ir_locations.h"

#include <string>
#include <vector>

namespace trainc::inspect {

struct DumpedOperation {
  int line;                       // where it begins, from 1
  int depth;                      // regions around it
  std::string operation;          // `nn.matmul`, `kernel.launch @h_ln`, `argument %x`
  std::string text;               // without its location; of a region, its first and last line
  std::vector<LocatedName> names; // of its location; none where that has no name
};

/// In the order of the file.
std::vector<DumpedOperation> operationsOf(const std::string &text);

/// The files of a folder of --dump-ir in their order; none where it has none or is none.
std::vector<std::string> dumpsIn(const std::string &folder);

/// Throws `failure` (exit_data) of a folder without files of IR.
[[noreturn]] void refuseDumps(const std::string &folder);

} // namespace trainc::inspect
