// SPDX-License-Identifier: Apache-2.0
//
// What the functions of a pipeline's chunks say together: which tensors go from which chunk to
// which, and the schedule that follows, as plain data for planning/pipeline_schedule.h.
#pragma once

#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include "passes/planning/pipeline_schedule.h"

namespace trainc {

/// A tensor that one chunk makes and another reads; places are null before plan-memory.
struct CrossingTensor {
  std::string name;
  mlir::RankedTensorType type;
  kernel::PlaceAttr from, to; // at the sender, at the receiver
};

/// What chunk `from` sends chunk `to`, which comes after it, and what comes back.
struct ChunkBoundary {
  int from, to;
  std::vector<CrossingTensor> activations, gradients;

  int64_t bytes() const; // of both
};

struct PipelinePlan {
  std::vector<ChunkBoundary> boundaries; // by chunks
  planning::Schedule schedule;
};

/// The plan of a module after split-pipeline.
PipelinePlan pipelinePlan(mlir::ModuleOp module);

} // namespace trainc
