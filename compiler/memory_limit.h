// SPDX-License-Identifier: Apache-2.0
//
// Whether a trainer fits the machine that it is built for: --limit-memory.
#pragma once

#include "compiler/report.h"
#include "passes/plan_tables.h"

namespace trainc {

/// Adds an error that names arenas and largest tensors where the plan takes more than `limit`
/// bytes.
llvm::LogicalResult checkMemoryLimit(const plan &described, int64_t limit, const std::string &model,
                                     Report &report);

/// The same of each stage, one error for the one that takes most.
llvm::LogicalResult checkMemoryLimit(const planned_stages &stages, int64_t limit,
                                     const std::string &model, Report &report);

} // namespace trainc
