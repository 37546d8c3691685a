// SPDX-License-Identifier: Apache-2.0
//
// Where a chain of segments is cut into stages so that the slowest is as fast as can be and
// each fits its memory. Dynamic programming over cuts and stages, after PipeDream's planner
// (SOSP 2019) for one worker a stage. Exact for the costs given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trainc::planning {

/// What lies between two neighbouring cuts.
struct Segment {
  double seconds = 0;         // of one micro-batch, forward and backward
  int64_t parameterBytes = 0; // with gradients and optimizer state
  int64_t stashBytes = 0;     // kept of each micro-batch in flight
  int64_t workingBytes = 0;   // most bytes alive besides, while it runs
};

struct Chain {
  std::vector<Segment> segments;
  std::vector<double> cutSeconds; // of the messages at the cut after each segment but the last
  int64_t memoryLimit = 0;        // bytes of a stage; 0 for none
  /// How many micro-batches are in flight on a stage of so many.
  std::function<int(int stage, int stages)> inFlight;
};

struct Partition {
  std::vector<int> first;  // segment of each stage, ascending, from 0; empty where none fits
  double slowest = 0;      // seconds of the slowest stage, its messages in
  int64_t leastMemory = 0; // bytes with which there is a partition
};

/// `stages` is at most the number of segments. Of equally good ones that with the earlier cuts.
Partition partitionChain(const Chain &chain, int stages);

/// Seconds and bytes of a stage that holds the segments from `first` to before `end`.
double stageSeconds(const Chain &chain, int first, int end);
int64_t stageBytes(const Chain &chain, int first, int end, int stage, int stages);

} // namespace trainc::planning
