// SPDX-License-Identifier: Apache-2.0
//
// What was planned, read off the module: the parts of plan/plan.json, with which limits are
// compared too.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/plan.h"
#include <string>
#include <vector>

namespace trainc {

/// How the trainer will be started, as far as a rank's memory depends on it.
void setPlannedRun(mlir::ModuleOp module, const rank_layout &run);
/// Nothing where nobody said it.
std::optional<rank_layout> plannedRun(mlir::ModuleOp module);

/// Of a module after plan-memory: the memory, and entry functions with their tensors alone.
plan describeMemory(mlir::ModuleOp module);

/// The tensors of an entry function, in the order of the plan.
std::vector<mlir::Value> tensorsOf(mlir::func::FuncOp function);

/// What a rank needs and what holds it up, for messages: each arena, and the five largest tensors
/// that exist at one time, or activations among them.
std::string memoryNeeds(const plan &described, bool activationsAlone = false);

/// Of a module after plan-memory.
planned_recompute describeRecompute(mlir::ModuleOp module);

/// Of a module after lower-to-kernels: entry functions with their kernels and steps.
std::vector<planned_entry> describeKernels(mlir::ModuleOp module);

/// Of a module after plan-memory that has @update.
planned_stages describeStages(mlir::ModuleOp module, llvm::StringRef target);

/// What a rank of a step in one piece holds, for some numbers of ranks and micro-batches.
std::vector<planned_rank> plannedRanks(const planned_stages &stages);

} // namespace trainc
