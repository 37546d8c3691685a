// SPDX-License-Identifier: Apache-2.0
//
// What ranks hold: whole programs and stages, alone and with shares of what a host has once.
#include "runtime/ranks/rank_memory.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

memory_needs in_one_piece() {
  memory_needs needs;
  needs.parameters = 1000;
  needs.gradients = 800;
  needs.state = 1600;
  needs.workspace = 30;
  needs.constants = 5;
  needs.stages = {{800, 400, 0, 0}};
  return needs;
}

memory_needs in_two_stages() {
  memory_needs needs = in_one_piece();
  needs.stages = {{500, 200, 60, 7}, {300, 250, 40, 9}};
  return needs;
}

TEST(RankMemory, aRankAlone) {
  const rank_memory rank = memory_of_ranks(in_one_piece(), {})[0];
  EXPECT_EQ(rank.parameters, 1000);
  EXPECT_EQ(rank.gradients, 800);
  EXPECT_EQ(rank.accumulators, 0);
  EXPECT_EQ(rank.state, 1600);
  EXPECT_EQ(rank.bytes(), 1000 + 800 + 1600 + 400 + 30 + 5);
}

TEST(RankMemory, sumsOverMicroBatches) {
  EXPECT_EQ(memory_of_ranks(in_one_piece(), {4, 4, 8, sharing::none})[0].accumulators, 3 * 800);
  EXPECT_EQ(memory_of_ranks(in_two_stages(), {1, 2, 4, sharing::state})[1].accumulators, 2 * 300);
}

TEST(RankMemory, stateOnceAHost) {
  const rank_memory rank = memory_of_ranks(in_one_piece(), {8, 4, 1, sharing::state})[0];
  EXPECT_EQ(rank.parameters, 250);
  EXPECT_EQ(rank.state, 400);
  EXPECT_EQ(rank.gradients, 800);
}

TEST(RankMemory, gradientsOfWhichNoRankKeepsAll) {
  const rank_memory rank = memory_of_ranks(in_one_piece(), {4, 4, 1, sharing::gradients})[0];
  EXPECT_EQ(rank.gradients, 0);
  EXPECT_EQ(rank.accumulators, 200);
  EXPECT_EQ(rank.parameters, 250);
  EXPECT_EQ(memory_of_ranks(in_one_piece(), {4, 4, 8, sharing::gradients})[0].accumulators, 600);
}

TEST(RankMemory, stages) {
  const std::vector<rank_memory> ranks =
      memory_of_ranks(in_two_stages(), {2, 4, 1, sharing::state});
  ASSERT_EQ(ranks.size(), 2u);
  // The total of what the first stage has not is in the first rank's arena: 300 bytes of 4 ranks.
  EXPECT_EQ(ranks[0].gradients, 500 + 75);
  EXPECT_EQ(ranks[1].gradients, 300 + 75);
  EXPECT_EQ(ranks[1].parameters, 250);
  EXPECT_EQ(ranks[1].bytes(), 250 + 375 + 400 + 250 + 40 + 9 + 30 + 5);
  EXPECT_EQ(memory_of_ranks(in_two_stages(), {2, 4, 1, sharing::gradients})[1].accumulators, 150);
}

TEST(RankMemory, stagesOfWhichEachRankHasAll) {
  memory_needs needs = in_two_stages();
  needs.every_rank_has_all = true;
  const rank_memory rank = memory_of_ranks(needs, {2, 4, 4, sharing::none})[1];
  EXPECT_EQ(rank.parameters, 1000);
  EXPECT_EQ(rank.gradients, 800);
  EXPECT_EQ(rank.accumulators, 600);
  EXPECT_EQ(rank.state, needs.state);
  needs.state_in_parts = true;
  EXPECT_EQ(memory_of_ranks(needs, {2, 4, 4, sharing::none})[1].state, needs.state * 300 / 800);
  EXPECT_EQ(memory_of_ranks(needs, {2, 4, 4, sharing::state})[1].state, needs.state * 300 / 1600);
}

TEST(RankMemory, stagesThatSendMessages) {
  const memory_needs needs = in_two_stages();
  const rank_memory rank = memory_of_ranks(needs, {2, 1, 4, sharing::none, false})[1];
  EXPECT_EQ(rank.parameters, needs.parameters);
  EXPECT_EQ(rank.state, needs.state);
  EXPECT_EQ(rank.gradients, needs.gradients);
  EXPECT_EQ(rank.accumulators, 600);
}

TEST(RankMemory, placesForMessages) {
  const int64_t tensors[] = {1, 65};
  const int64_t place = place_bytes(cpu_messages, 2, [&](int64_t i) { return tensors[i]; });
  EXPECT_EQ(place, 64 + 64 + 128);
  std::vector<stage_needs> stages(2);
  add_messages(stages, {{0, 1, 3, place}}, cpu_messages);
  EXPECT_EQ(stages[0].messages, 4096);
  EXPECT_EQ(stages[1].messages, 4096 + 128 + 3 * 256);
  std::vector<stage_needs> both(2);
  add_messages(both, {{0, 1, 2, 256}, {1, 1, 2, 256}}, cuda_messages);
  EXPECT_EQ(both[0].messages, 512);
  EXPECT_EQ(both[1].messages, 1024);
}

} // namespace
} // namespace trainc
