// SPDX-License-Identifier: Apache-2.0
//
// The commands of trainc-data.
#pragma once

#include "tools/data/arguments.h"

namespace trainc::data {

const CommandRow &textCommand();
const CommandRow &labelledCommand();
const CommandRow &csvCommand();
const CommandRow &imagesCommand();
const CommandRow &rawCommand();
const CommandRow &checkCommand();

} // namespace trainc::data
