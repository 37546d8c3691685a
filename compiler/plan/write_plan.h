// SPDX-License-Identifier: Apache-2.0
//
// The documents of plan/ as text: the members that runtime/plan/plan.h lists, an element of a
// list in each line.
#pragma once

#include "runtime/plan/plan.h"

#include <string>

namespace trainc {

std::string planJson(const plan &plan);
std::string sourceMapJson(const source_map &map);
std::string registersJson(const register_table &table);

} // namespace trainc
