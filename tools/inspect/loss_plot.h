// SPDX-License-Identifier: Apache-2.0
//
// The losses of a run as lines of plain characters, with a few figures below.
#pragma once

#include "tools/inspect/run_log.h"

#include <string>

namespace trainc::inspect {

/// No line is longer than `width`, of which it takes 40 at least.
std::string lossPlot(const RunLog &log, int width);

} // namespace trainc::inspect
