// SPDX-License-Identifier: Apache-2.0
//
// What trainc has decided of a step in stages, as plain data: the lists of actions that the trainer
// interprets, what each chunk computes and holds, what crosses between chunks. Read from
// plan/stages.json and plan/kernels.json of an output folder.
#pragma once

#include "passes/planning/pipeline_schedule.h"
#include "runtime/ranks/rank_memory.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trainc::simulate {

/// Gradients that replicas add at once, where no rank keeps all of them.
struct PlanBucket {
  bool ofWeightGradient = false; // of that function, where there is one
  double bytes = 0, behind = 0;  // the share of the function's time after which it is whole
};

struct ChunkPlan {
  /// Entry functions; a step in one piece has no forward one, and where the backward function has
  /// the weight gradients there is none for them.
  std::string forward, backward, weightGradient;
  double forwardTime = 0, backwardTime = 0; // predicted, as bytes of traffic
  double weightGradientShare = 0;           // of the backward time
  int64_t gradientBytes = 0, activationBytes = 0, slotBytes = 0;
  /// Of sharded gradients, those of the weight gradient's function after the others.
  std::vector<PlanBucket> buckets;
};

/// Of a message, and of a place for it.
struct BoundaryBytes {
  double activations = 0, gradients = 0;
  int64_t activationPlace = 0, gradientPlace = 0;
};

/// Equal steps of an entry function.
struct KernelCost {
  double flops = 0, bytes = 0; // of one
  int times = 0;
};

struct EntryPlan {
  int steps = 0;
  std::vector<KernelCost> kernels;
};

struct StagePlan {
  std::string folder;
  planning::Schedule schedule; // proven
  std::vector<ChunkPlan> chunks;
  std::vector<BoundaryBytes> boundaries;
  std::string target;             // cpu or cuda
  sharing shared = sharing::none; // what ranks of a host share, whatever the trainer is asked for
  bool updatesInParts = false;    // so that a trainer may share the optimizer's state
  memory_needs arenas;            // of the program, without its stages
  std::map<std::string, EntryPlan> entries;

  bool isCut() const { return chunks.size() > 1; }
};

/// What the ranks of a schedule of the plan's chunks need.
memory_needs needsOf(const StagePlan &plan, const planning::Schedule &schedule);

/// Throws `failure` (exit_data) with what is wrong of the folder's files.
StagePlan readStagePlan(const std::string &folder);

/// Another schedule of the plan's chunks, which trainc would make of the same options: on `stages`
/// stages, as `kind` says. Throws `failure` (exit_usage) where there is none.
planning::Schedule scheduleFor(const StagePlan &plan, int stages, planning::ScheduleKind kind,
                               int microBatches);

} // namespace trainc::simulate
