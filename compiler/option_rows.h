// SPDX-License-Identifier: Apache-2.0
//
// The options of trainc: one row each (runtime/options/option_table.h).
#pragma once

#include "compiler/options.h"
#include "runtime/options/option_table.h"

namespace trainc {

/// All options, whose values are an `Options`.
const option_table &optionsOfTrainc();

} // namespace trainc
