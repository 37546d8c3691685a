// SPDX-License-Identifier: Apache-2.0
//
// The operations of a file of `trainc --dump-ir`, found by what their locations name. The file is
// read as text: it is what an editor shows, and lines are what is looked for.
#pragma once

#include "tools/inspect/ir_locations.h"

#include <functional>
#include <string>
#include <vector>

namespace trainc::inspect {

struct DumpedOperation {
  int line;              // where it begins, from 1
  std::string operation; // `nn.matmul`, `kernel.launch @h_ln`, `argument %x`
  std::string title;     // of what it computes: `gradient of h.0.ln_1`
};

/// Those one of whose names `isMeant`, in the order of the file.
std::vector<DumpedOperation> operationsOf(const std::string &text,
                                          const std::function<bool(const LocatedName &)> &isMeant);

} // namespace trainc::inspect
