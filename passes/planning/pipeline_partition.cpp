// SPDX-License-Identifier: Apache-2.0
//
// The best last cut for each number of stages and segments (pipeline_partition.h).
#include "passes/planning/pipeline_partition.h"

#include <algorithm>
#include <limits>

namespace trainc::planning {

namespace {

/// Sums and messages of stages in constant time, working bytes in the order of their length.
class StageCosts {
public:
  StageCosts(const Chain &chain, int stages) : chain(chain), stages(stages) {
    for (const Segment &segment : chain.segments) {
      seconds.push_back(seconds.back() + segment.seconds);
      parameters.push_back(parameters.back() + segment.parameterBytes);
      stash.push_back(stash.back() + segment.stashBytes);
    }
  }

  double secondsOf(int first, int end) const {
    double messages = first > 0 ? chain.cutSeconds[first - 1] : 0;
    if (end < int(chain.segments.size()))
      messages += chain.cutSeconds[end - 1];
    return seconds[end] - seconds[first] + messages;
  }

  int64_t bytesOf(int first, int end, int stage, int64_t working) const {
    int inFlight = chain.inFlight ? chain.inFlight(stage, stages) : 1;
    return parameters[end] - parameters[first] + inFlight * (stash[end] - stash[first]) + working;
  }

private:
  const Chain &chain;
  int stages;
  std::vector<double> seconds{0};
  std::vector<int64_t> parameters{0}, stash{0};
};

/// best[end]: the slowest of the stages so far, of the segments before `end`; `cost` combines.
template <typename Value, typename CostOf>
std::vector<int> bestCuts(const Chain &chain, int stages, Value worst, CostOf costOf, Value &best) {
  int count = int(chain.segments.size());
  std::vector<Value> reached(count + 1, worst);
  std::vector<std::vector<int>> cutOf(stages, std::vector<int>(count + 1, -1));
  reached[0] = 0;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Value> next(count + 1, worst);
    for (int end = stage + 1; end <= count - (stages - 1 - stage); ++end) {
      int64_t working = 0;
      for (int first = end - 1; first >= stage; --first) {
        working = std::max(working, chain.segments[first].workingBytes);
        if (reached[first] == worst)
          continue;
        Value value = std::max(reached[first], costOf(first, end, stage, working));
        if (value <= next[end] && value != worst) {
          next[end] = value;
          cutOf[stage][end] = first;
        }
      }
    }
    reached = std::move(next);
  }
  best = reached[count];
  std::vector<int> cuts;
  if (best == worst)
    return cuts;
  for (int stage = stages - 1, end = count; stage >= 0; --stage)
    cuts.insert(cuts.begin(), end = cutOf[stage][end]);
  return cuts;
}

} // namespace

Partition partitionChain(const Chain &chain, int stages) {
  StageCosts costs(chain, stages);
  Partition partition;
  bestCuts(
      chain, stages, std::numeric_limits<int64_t>::max(),
      [&](int first, int end, int stage, int64_t working) {
        return costs.bytesOf(first, end, stage, working);
      },
      partition.leastMemory);
  constexpr double tooMuch = std::numeric_limits<double>::infinity();
  partition.first = bestCuts(
      chain, stages, tooMuch,
      [&](int first, int end, int stage, int64_t working) {
        bool fits =
            !chain.memoryLimit || costs.bytesOf(first, end, stage, working) <= chain.memoryLimit;
        return fits ? costs.secondsOf(first, end) : tooMuch;
      },
      partition.slowest);
  return partition;
}

double stageSeconds(const Chain &chain, int first, int end) {
  return StageCosts(chain, 1).secondsOf(first, end);
}

int64_t stageBytes(const Chain &chain, int first, int end, int stage, int stages) {
  int64_t working = 0;
  for (int i = first; i < end; ++i)
    working = std::max(working, chain.segments[i].workingBytes);
  return StageCosts(chain, stages).bytesOf(first, end, stage, working);
}

} // namespace trainc::planning
