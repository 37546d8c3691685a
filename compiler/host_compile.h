// SPDX-License-Identifier: Apache-2.0
//
// The host compiler's part of a compilation: from the emitted source to the trainer, the library
// and, with --bundle, the libraries beside them.
#pragma once

#include "compiler/build_request.h"

namespace trainc {

/// Whether all was built; else the report says why, and what to try.
bool compileOnHost(const BuildRequest &request);

} // namespace trainc
