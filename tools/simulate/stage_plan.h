// SPDX-License-Identifier: Apache-2.0
//
// What trainc has decided of a step in stages, as plain data: the lists of actions that the trainer
// interprets, what each chunk computes and holds, what crosses between chunks. Read from
// plan/stages.json and plan/kernels.json of an output folder.
#pragma once

#include "passes/planning/pipeline_schedule.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trainc::simulate {

struct ChunkPlan {
  /// Entry functions; a step in one piece has no forward one, and where the backward function has
  /// the weight gradients there is none for them.
  std::string forward, backward, weightGradient;
  double forwardTime = 0, backwardTime = 0; // predicted, as bytes of traffic
  double weightGradientShare = 0;           // of the backward time
  double parameterBytes = 0, gradientBytes = 0, stateBytes = 0, activationBytes = 0, slotBytes = 0;
};

struct BoundaryBytes {
  double activations = 0, gradients = 0;
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
  double workspaceBytes = 0;
  std::map<std::string, EntryPlan> entries;

  bool isCut() const { return chunks.size() > 1; }
};

/// A document, an object. Throws `failure` (exit_data) where the file cannot be read or is none.
nlohmann::json readDocument(const std::string &path);

/// Throws `failure` (exit_data) with what is wrong of the folder's files.
StagePlan readStagePlan(const std::string &folder);

/// Another schedule of the plan's chunks, which trainc would make of the same options: on `stages`
/// stages, as `kind` says. Throws `failure` (exit_usage) where there is none.
planning::Schedule scheduleFor(const StagePlan &plan, int stages, planning::ScheduleKind kind,
                               int microBatches);

} // namespace trainc::simulate
