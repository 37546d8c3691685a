// SPDX-License-Identifier: Apache-2.0
//
// The model as a C library: its header, its source, and what build systems read of it.
#pragma once

#include "compiler/build_request.h"

namespace trainc {

std::string nameOfLibrary(const Model &model);

/// Writes the files into the output's folders `source` and, where something is compiled, `library`.
llvm::LogicalResult emitLibrary(const BuildRequest &request);

} // namespace trainc
