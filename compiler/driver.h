// SPDX-License-Identifier: Apache-2.0
//
// The compiler from command line to output folder.
#pragma once

#include "compiler/exit_codes.h"
#include "compiler/options.h"

namespace trainc {

/// Compiles as the options say. Messages go to stderr, progress to a terminal only.
ExitCode compileModel(const Options &options);

} // namespace trainc
