// SPDX-License-Identifier: Apache-2.0
//
// What the functions of a pipeline's chunks say together: which tensors go from which chunk to
// which, and the schedule that follows, as plain data for planning/pipeline_schedule.h.
#pragma once

#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include "passes/plan_tables.h"
#include "passes/planning/pipeline_schedule.h"
#include "runtime/ranks/rank_memory.h"

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

/// Gradients that the replicas of a stage add at once, of a program that shards them.
struct PlannedBucket {
  std::string function;
  int64_t bytes;
  double behind; // the share of the function's predicted time after which it is whole
};

/// What a chunk computes for a micro-batch and what a rank of its stage holds for it.
struct PlannedChunk {
  /// Entry functions; a step in one piece has no forward one, and where the backward function has
  /// the weight gradients there is none for them.
  std::string forward, backward, weightGradient;
  double flops = 0;
  int64_t bytes = 0;                        // moved
  double forwardTime = 0, backwardTime = 0; // as bytes of traffic, weight gradients included
  /// The part of backwardTime in steps that no gradient of another chunk waits for.
  double weightGradientShare = 0;
  int64_t parameters = 0; // those that several chunks use are the first one's
  int64_t parameterBytes = 0, gradientBytes = 0, stateBytes = 0;
  int64_t activationBytes = 0, slotBytes = 0;
  std::vector<PlannedBucket> buckets; // in the order of the functions and their steps
};

struct StageTable {
  PipelinePlan plan; // of one chunk where the step is in one piece
  std::vector<std::string> cuts;
  std::vector<PlannedChunk> chunks;
  std::string target;
  memory_needs needs;
  bool updatesInParts = false;
  sharing shared = sharing::none; // what ranks of a host share in any run

  /// What a rank of each stage holds, where the replicas are on one host.
  std::vector<rank_memory> memoryOfRanks(int replicas) const;
};

/// The table of a module after plan-memory that has @update.
StageTable describeStages(mlir::ModuleOp module, llvm::StringRef target);

/// What a rank of a step in one piece holds, for some numbers of ranks and micro-batches.
std::vector<PlannedRank> plannedRanks(const StageTable &table);

/// Null where there is none.
std::optional<planning::ScheduleKind> scheduleKind(llvm::StringRef name);

} // namespace trainc
