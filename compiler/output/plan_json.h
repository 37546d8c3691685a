// SPDX-License-Identifier: Apache-2.0
//
// The plans for programs: the JSON files beside the text of `plan/`. docs/plans.md describes
// them; kPlanVersion grows where a reader of an older one could misread.
#pragma once

#include "compiler/onnx/reader.h"
#include "passes/plan_tables.h"
#include "passes/stages/pipeline_plan.h"

namespace trainc {

constexpr int kPlanVersion = 1;

/// Which program the plans are of, as a run of it says in its configuration.
std::string programJson(mlir::ModuleOp module);
std::string memoryPlanJson(const MemoryTable &plan);
std::string kernelListJson(const std::vector<ListedEntry> &entries);
std::string recomputeJson(const RecomputeTable &plan);
/// With the list of actions of every stage, as the trainer has it. `updatesInParts`: ranks may
/// update a part each.
std::string stagesJson(const StageTable &plan, bool updatesInParts);
/// Nodes of the file with their names in IR and plans, and which of them each step computes.
std::string nodesJson(const Model &model, mlir::ModuleOp module);
/// Parameters and buffers with what the step does with them.
std::string parametersJson(const Model &model, mlir::ModuleOp module);

} // namespace trainc
