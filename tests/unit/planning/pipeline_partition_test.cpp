// SPDX-License-Identifier: Apache-2.0
//
// Cuts of random chains against every possible choice.
#include "passes/planning/pipeline_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

using namespace trainc::planning;

namespace {

Chain randomChain(std::mt19937 &random, int segments) {
  Chain chain;
  for (int i = 0; i < segments; ++i)
    chain.segments.push_back({double(1 + random() % 100), int64_t(random() % 1000),
                              int64_t(random() % 1000), int64_t(random() % 500)});
  for (int i = 0; i + 1 < segments; ++i)
    chain.cutSeconds.push_back(double(random() % 30));
  chain.inFlight = [](int stage, int stages) { return stages - stage; };
  return chain;
}

struct Best {
  double slowest = std::numeric_limits<double>::infinity();
  int64_t leastMemory = std::numeric_limits<int64_t>::max();
};

/// Every choice of the cuts from `first` on.
void tryAll(const Chain &chain, std::vector<int> &cuts, int stages, Best &best) {
  int count = int(chain.segments.size());
  if (int(cuts.size()) < stages) {
    for (int next = cuts.back() + 1; next < count; ++next) {
      cuts.push_back(next);
      tryAll(chain, cuts, stages, best);
      cuts.pop_back();
    }
    return;
  }
  double slowest = 0;
  int64_t most = 0;
  for (int stage = 0; stage < stages; ++stage) {
    int end = stage + 1 < stages ? cuts[stage + 1] : count;
    slowest = std::max(slowest, stageSeconds(chain, cuts[stage], end));
    most = std::max(most, stageBytes(chain, cuts[stage], end, stage, stages));
  }
  best.leastMemory = std::min(best.leastMemory, most);
  if (!chain.memoryLimit || most <= chain.memoryLimit)
    best.slowest = std::min(best.slowest, slowest);
}

TEST(PipelinePartition, equalsEveryChoiceTried) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    Chain chain = randomChain(random, 2 + int(random() % 14));
    int stages = 1 + int(random() % std::min<size_t>(6, chain.segments.size()));
    std::vector<int> cuts{0};
    Best best;
    tryAll(chain, cuts, stages, best);
    EXPECT_EQ(partitionChain(chain, stages).leastMemory, best.leastMemory);
    for (int64_t limit :
         {int64_t(0), best.leastMemory, best.leastMemory + 500, best.leastMemory - 1}) {
      chain.memoryLimit = limit;
      Best limited;
      tryAll(chain, cuts, stages, limited);
      Partition found = partitionChain(chain, stages);
      EXPECT_EQ(found.slowest, limited.slowest) << "chain " << i << ", limit " << limit;
      EXPECT_EQ(found.first.empty(), limited.slowest == std::numeric_limits<double>::infinity());
    }
  }
}

TEST(PipelinePartition, sharesOutEqualSegments) {
  Chain chain;
  chain.segments.assign(48, {1});
  chain.cutSeconds.assign(47, 0);
  EXPECT_EQ(partitionChain(chain, 8).first, (std::vector<int>{0, 6, 12, 18, 24, 30, 36, 42}));
}

TEST(PipelinePartition, keepsAwayFromDearCuts) {
  Chain chain;
  chain.segments.assign(4, {1});
  chain.cutSeconds = {0, 10, 0};
  EXPECT_EQ(partitionChain(chain, 2).first, (std::vector<int>{0, 1}));
}

} // namespace
