// SPDX-License-Identifier: Apache-2.0
//
// What the functions of a pipeline's stages say together: which tensors go from which stage to
// which, and the schedule that follows, as plain data for planning/pipeline_schedule.h.
#pragma once

#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include "passes/planning/pipeline_schedule.h"

namespace trainc {

/// A tensor that one stage makes and another reads; places are null before plan-memory.
struct CrossingTensor {
  std::string name;
  mlir::RankedTensorType type;
  kernel::PlaceAttr from, to; // at the sender, at the receiver
};

/// What stage `from` sends stage `to`, which comes behind it, and what comes back.
struct StageBoundary {
  int from, to;
  std::vector<CrossingTensor> activations, gradients;

  int64_t bytes() const; // of both
};

struct PipelinePlan {
  std::vector<StageBoundary> boundaries; // by stages
  planning::Schedule schedule;
};

/// Of a module behind split-pipeline.
PipelinePlan pipelinePlan(mlir::ModuleOp module);

/// Null where there is none.
std::optional<planning::ScheduleKind> scheduleKind(llvm::StringRef name);

} // namespace trainc
