// SPDX-License-Identifier: Apache-2.0
//
// Where a part of the model went: its operations in the dumps of IR, its steps, the lines of the
// emitted source, and where its tensors lie and how long they live.
#pragma once

#include "llvm/Support/raw_ostream.h"
#include <string>

namespace trainc::inspect {

struct WhereQuestion {
  std::string folder; // of trainc's output
  std::string name;   // of a node, a value or a parameter of the file, or of a plan; a module
  std::string dumps;  // the folder of --dump-ir; empty: the output's folder `ir`, if it has one
  bool all = false;   // every operation of each dump, not the first ones
};

/// Throws `failure`: exit_usage where nothing has the name, exit_data where a file cannot be read
/// or is of another program.
void printWhere(const WhereQuestion &question, llvm::raw_ostream &stream);

} // namespace trainc::inspect
