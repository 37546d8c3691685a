// SPDX-License-Identifier: Apache-2.0
//
// What a compiled program needs of memory, as runtime/ranks/rank_memory.h counts it.
#pragma once

#include "runtime/options/options.h"
#include "runtime/program.h"
#include "runtime/ranks/rank_memory.h"

namespace trainc {

// Of stages on the CPU it matters whether their ranks share memory.
memory_needs memory_needs_of(const program &program, bool shares_memory = true);

// What ranks share where there are several.
sharing sharing_of(const program &program, shard_kind asked, bool shares_memory = true);

} // namespace trainc
