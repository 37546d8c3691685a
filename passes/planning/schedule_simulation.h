// SPDX-License-Identifier: Apache-2.0
//
// How long a step takes: executes the action lists of a schedule on every rank of
// stages x replicas, each with a clock of its own, a link to each peer and one on which
// its reductions run beside the computation.
#pragma once

#include "passes/planning/pipeline_schedule.h"

#include <functional>

namespace trainc::planning {

/// Gradients that the replicas of a stage add while a function makes them: they meet where the
/// bucket is whole, and go on when each has added its part.
struct BucketSeconds {
  double behind;   // share of the function's seconds
  double exchange; // after the meeting
};

struct ChunkSeconds {
  double forward = 0, inputGradient = 0, weightGradient = 0;
  double reduce = 0; // over the replicas of the stage
  double update = 0;
  /// The buckets of either function, ascending; where both are one, the two lists are of it, one
  /// after the other. The replicas meet once more at the end of a function that has some.
  std::vector<BucketSeconds> inputBuckets = {}, weightBuckets = {};
};

struct StepCosts {
  std::vector<ChunkSeconds> chunks;
  /// How long a boundary's tensors are under way from one rank to another, how much of it the link
  /// is taken, and how long either rank itself copies. Ranks are numbered replica * stages + stage.
  struct Transfer {
    double latency = 0, occupied = 0;
    double sending = 0, receiving = 0;
  };
  /// What sending activations or gradients over a boundary costs. Free where not set.
  std::function<Transfer(int boundary, bool ofGradients, int fromRank, int toRank)> transfer;
  double norm = 0;
  double rest = 0; // of the step as a whole, after the last action of all ranks
};

struct Span {
  double start = 0, end = 0;
};

struct StepTimes {
  double seconds = 0;            // of the step, the rest too
  double bubble = 0;             // share of the ranks' time in which they do not compute
  std::vector<double> computing; // by rank, seconds, the update too
  std::vector<double> exposed;   // by rank: seconds in reductions and waiting for them
  double rest = 0;               // of `seconds`: after the last action of all ranks
  // For the first replica, by stage.
  std::vector<std::vector<Span>> spans;     // by action, waiting included
  std::vector<std::vector<Span>> exchanges; // of gradients and totals, in which the rank computes
                                            // nothing; waiting for reductions included
  std::vector<std::vector<Span>> copies;    // of messages, by the rank itself
};

/// Only of a proven schedule.
StepTimes simulateStep(const Schedule &schedule, int replicas, const StepCosts &costs);

/// A row per stage, a column per `unit` seconds: micro-batches as numbers, forward as `3`,
/// backward or input gradient as `3'`, weight gradient as `3"`, update as `U`, idle as `.`; of
/// several chunks on a stage the second is `3b`. A last line says how many passes are left out as
/// shorter than a column, and of how many micro-batches, where there are some.
std::string gridOf(const Schedule &schedule, const StepTimes &times, double unit);

} // namespace trainc::planning
