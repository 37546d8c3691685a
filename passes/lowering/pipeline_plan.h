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

/// What a stage computes for a micro-batch and what one of its ranks holds.
struct PlannedStage {
  std::string forward, backward; // entry functions; a step in one piece has no forward one
  double flops = 0;
  int64_t bytes = 0;                        // moved
  double forwardTime = 0, backwardTime = 0; // as bytes of traffic
  /// Of backwardTime, the part of the steps that no gradient of another stage waits for.
  double weightGradientShare = 0;
  int64_t parameters = 0; // those that several stages use are the first one's
  int64_t parameterBytes = 0, gradientBytes = 0, stateBytes = 0;
  int64_t activationBytes = 0, slotBytes = 0;
};

struct StageTable {
  PipelinePlan plan; // of one stage where the step is in one piece
  std::vector<std::string> cuts;
  std::vector<PlannedStage> stages;
  int64_t workspaceBytes = 0;
};

/// Of a module behind plan-memory that has @update.
StageTable describeStages(mlir::ModuleOp module);

/// Null where there is none.
std::optional<planning::ScheduleKind> scheduleKind(llvm::StringRef name);

} // namespace trainc
