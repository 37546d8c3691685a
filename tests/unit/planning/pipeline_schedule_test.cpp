// SPDX-License-Identifier: Apache-2.0
//
// Orders against their grids, bubbles against the formulas, proofs against corruptions.
#include "passes/planning/schedule_proof.h"
#include "passes/planning/schedule_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace trainc::planning;

namespace {

Pipeline chainOf(int stages, int chunksPerStage, int microBatches) {
  Pipeline pipeline{stages, chunksPerStage, microBatches, {}};
  for (int chunk = 0; chunk + 1 < pipeline.chunks(); ++chunk)
    pipeline.boundaries.push_back({chunk, chunk + 1});
  return pipeline;
}

/// Every kind of tensor: of neighbours, and some that skip stages.
Pipeline skipping(int stages, int chunksPerStage, int microBatches) {
  Pipeline pipeline = chainOf(stages, chunksPerStage, microBatches);
  if (pipeline.chunks() > 2) {
    pipeline.boundaries.push_back({0, pipeline.chunks() - 1});
    pipeline.boundaries.push_back({1, pipeline.chunks() - 1});
    if (pipeline.chunks() == 3)
      pipeline.boundaries.pop_back();
  }
  return pipeline;
}

StepCosts unitCosts(const Schedule &schedule) {
  StepCosts costs;
  costs.chunks.assign(schedule.pipeline.chunks(), {1, 1, 1, 0, 0});
  return costs;
}

double bubbleOf(ScheduleKind kind, const Pipeline &pipeline) {
  Schedule schedule = makeSchedule(kind, pipeline);
  return simulateStep(schedule, 1, unitCosts(schedule)).bubble;
}

std::string unitGrid(ScheduleKind kind, const Pipeline &pipeline) {
  Schedule schedule = makeSchedule(kind, pipeline);
  return gridOf(schedule, simulateStep(schedule, 1, unitCosts(schedule)), 1);
}

std::string firstFault(const Schedule &schedule) {
  std::vector<std::string> faults = faultsOf(schedule, 1);
  return faults.empty() ? "" : faults[0];
}

void forEachSchedule(const std::function<void(const Schedule &)> &use) {
  for (int stages : {1, 2, 3, 4, 8})
    for (int microBatches : {1, 2, 3, 8, 16, 24})
      for (int chunks : {1, 2, 3})
        for (ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::oneForwardOneBackward,
                                  ScheduleKind::interleaved, ScheduleKind::zeroBubble})
          for (bool plain : {true, false}) {
            Pipeline pipeline = (plain ? chainOf : skipping)(stages, chunks, microBatches);
            if (unfit(kind, pipeline).empty())
              use(makeSchedule(kind, pipeline));
          }
}

TEST(PipelineSchedule, grids) {
  EXPECT_EQ(unitGrid(ScheduleKind::gpipe, chainOf(2, 1, 3)),
            "stage 0 |  0  1  2  .  .  . 0' 0' 1' 1' 2' 2'\n"
            "stage 1 |  .  0  1  2 0' 0' 1' 1' 2' 2'  .  .\n");
  EXPECT_EQ(unitGrid(ScheduleKind::oneForwardOneBackward, chainOf(3, 1, 4)),
            "stage 0 |  0  1  2  .  .  .  . 0' 0'  3 1' 1'  . 2' 2'  . 3' 3'\n"
            "stage 1 |  .  0  1  .  . 0' 0'  2 1' 1'  3 2' 2'  . 3' 3'  .  .\n"
            "stage 2 |  .  .  0 0' 0'  1 1' 1'  2 2' 2'  3 3' 3'  .  .  .  .\n");
  EXPECT_EQ(unitGrid(ScheduleKind::zeroBubble, chainOf(3, 1, 4)),
            "stage 0 |  0  1  2  .  . 0' 0\"  3 1' 1\" 2' 2\" 3' 3\"\n"
            "stage 1 |  .  0  1  . 0'  2 1' 0\"  3 2' 1\" 3' 2\" 3\"\n"
            "stage 2 |  .  .  0 0'  1 1'  2 2' 0\"  3 3' 1\" 2\" 3\"\n");
  EXPECT_EQ(unitGrid(ScheduleKind::interleaved, chainOf(2, 2, 2)),
            "stage 0 |  0a  1a  0b  1b   .   . 0b' 0b'   . 1b' 1b' 0a' 0a' 1a' 1a'\n"
            "stage 1 |   .  0a  1a  0b 0b' 0b'  1b 1b' 1b' 0a' 0a' 1a' 1a'   .   .\n");
}

TEST(PipelineSchedule, gridsSayWhatTheyLeaveOut) {
  Schedule schedule = makeSchedule(ScheduleKind::gpipe, chainOf(1, 1, 4));
  const StepTimes times = simulateStep(schedule, 1, unitCosts(schedule)); // 0 1 2 3 0' 0' ... 3' 3'
  EXPECT_EQ(gridOf(schedule, times, 1).find("left out"), std::string::npos);
  EXPECT_EQ(gridOf(schedule, times, 2), // of 1 and 3 no forward pass
            "stage 0 |  0  2 0' 1' 2' 3'\n"
            "left out, as shorter than a column: 2 of 8 passes, of 2 of 4 micro-batches\n");
  EXPECT_NE(gridOf(schedule, times, 6).find(": 6 of 8 passes, of 3 of 4 "), std::string::npos);
}

TEST(PipelineSchedule, isProven) {
  int count = 0;
  forEachSchedule([&](const Schedule &schedule) {
    ++count;
    EXPECT_EQ(firstFault(schedule), "") << nameOf(schedule.kind) << ", " << schedule.pipeline.stages
                                        << " stages, " << schedule.pipeline.microBatches;
  });
  EXPECT_GT(count, 150);
}

TEST(PipelineSchedule, bubblesFollowTheFormulas) {
  for (int stages : {2, 3, 4, 8, 16})
    for (int microBatches : {stages, 2 * stages, 4 * stages, 8 * stages}) {
      double p = stages, m = microBatches, plain = (p - 1) / (m + p - 1);
      EXPECT_NEAR(bubbleOf(ScheduleKind::gpipe, chainOf(stages, 1, microBatches)), plain, 1e-12);
      EXPECT_NEAR(bubbleOf(ScheduleKind::oneForwardOneBackward, chainOf(stages, 1, microBatches)),
                  plain, 1e-12);
      EXPECT_NEAR(bubbleOf(ScheduleKind::zeroBubble, chainOf(stages, 1, microBatches)),
                  (p - 1) / (3 * m + p - 1), 1e-12)
          << stages << " stages, " << microBatches;
      for (int chunks : {2, 4})
        EXPECT_NEAR(bubbleOf(ScheduleKind::interleaved, chainOf(stages, chunks, microBatches)),
                    (p - 1) / (chunks * m + p - 1), 1e-12)
            << stages << " stages, " << microBatches;
    }
}

TEST(PipelineSchedule, stashes) {
  Schedule turns = makeSchedule(ScheduleKind::oneForwardOneBackward, chainOf(4, 1, 8));
  EXPECT_EQ(turns.stashSlots, (std::vector<int>{4, 3, 2, 1}));
  Schedule all = makeSchedule(ScheduleKind::gpipe, chainOf(4, 1, 8));
  EXPECT_EQ(all.stashSlots, (std::vector<int>{8, 8, 8, 8}));
  Schedule zero = makeSchedule(ScheduleKind::zeroBubble, chainOf(4, 1, 8));
  for (int slots : zero.stashSlots)
    EXPECT_LE(slots, 4);
}

/// Spoils a proven schedule; false where this way of doing it does not apply.
bool corrupt(Schedule &schedule, std::mt19937 &random) {
  auto below = [&](size_t end) { return size_t(random() % end); };
  std::vector<Action> &actions = schedule.actions[below(schedule.actions.size())];
  size_t chosen = below(actions.size());
  Action &action = actions[chosen];
  bool message = isSend(action.kind) || isReceive(action.kind);
  switch (below(7)) {
  case 0: // dropped
    actions.erase(actions.begin() + chosen);
    return true;
  case 1: // twice
    actions.insert(actions.begin() + below(actions.size() + 1), Action(action));
    return true;
  case 2: { // swapped with another of its chunk and micro-batch, or of its kind
    Action &other = actions[below(actions.size())];
    bool samePath = action.chunk == other.chunk && action.microBatch == other.microBatch &&
                    action.microBatch >= 0 && action.kind != other.kind;
    bool sameKind = action.kind == other.kind && action.chunk == other.chunk &&
                    action.boundary == other.boundary && !(action == other);
    std::swap(action, other);
    return samePath || sameKind;
  }
  case 3: // another peer
    action.peer = (action.peer + 1 + int(below(schedule.actions.size()))) % 8;
    return message;
  case 4: // another micro-batch
    action.microBatch += below(2) ? 1 : -1;
    return isCompute(action.kind) || message;
  case 5: { // a slot of the stash too few
    int &slots = schedule.stashSlots[action.chunk < 0 ? 0 : action.chunk];
    if (slots < 2 || !isCompute(action.kind))
      return false;
    --slots;
    for (Action &other : actions)
      if (isCompute(other.kind) && other.chunk == action.chunk)
        other.slot = other.microBatch % slots;
    return true;
  }
  default: // another slot or place
    action.slot += below(2) ? 1 : -1;
    return isCompute(action.kind) || message;
  }
}

TEST(PipelineSchedule, corruptionsAreRejected) {
  std::vector<Schedule> schedules;
  forEachSchedule([&](const Schedule &schedule) {
    if (schedule.pipeline.stages > 1 && schedule.pipeline.microBatches > 1)
      schedules.push_back(schedule);
  });
  std::mt19937 random(11);
  for (int done = 0; done < 500;) {
    Schedule schedule = schedules[random() % schedules.size()];
    std::vector<std::vector<Action>> before = schedule.actions;
    if (!corrupt(schedule, random) || schedule.actions == before)
      continue;
    ++done;
    std::string fault = firstFault(schedule);
    EXPECT_EQ(fault.rfind("stage ", 0), 0u)
        << "corruption " << done << " of " << nameOf(schedule.kind) << ": '" << fault << "'";
  }
}

TEST(PipelineSchedule, waitsInARingAreFound) {
  Schedule schedule = makeSchedule(ScheduleKind::gpipe, skipping(3, 1, 2));
  auto &actions = schedule.actions[0];
  auto gradient = std::find_if(actions.begin(), actions.end(), [](const Action &a) {
    return a.kind == ActionKind::receiveGradient;
  });
  std::swap(gradient[-1], gradient[0]); // before the last activation is sent
  EXPECT_NE(firstFault(schedule).find("waits for a stage that waits for this one"),
            std::string::npos);
}

TEST(PipelineSchedule, unfitOnesSayWhy) {
  EXPECT_NE(unfit(ScheduleKind::interleaved, chainOf(4, 2, 6)).find("multiple of its 4 stages"),
            std::string::npos);
  EXPECT_NE(unfit(ScheduleKind::interleaved, chainOf(4, 1, 8)), "");
  EXPECT_NE(unfit(ScheduleKind::gpipe, chainOf(4, 2, 8)), "");
  EXPECT_NE(unfit(ScheduleKind::gpipe, chainOf(4, 1, 0)), "");
}

TEST(ScheduleSimulation, messagesAndReductions) {
  Pipeline pipeline = chainOf(2, 1, 1);
  Schedule schedule = makeSchedule(ScheduleKind::oneForwardOneBackward, pipeline);
  StepCosts costs;
  costs.chunks = {{1, 2, 3, 10, 0.5}, {4, 5, 6, 20, 0.25}};
  costs.norm = 0.125;
  costs.transfer = [](int, bool ofGradients, int from, int) {
    EXPECT_EQ(ofGradients, from % 2 == 1);
    return StepCosts::Transfer{from % 2 ? 0.25 : 0.5, 0.5, 0, 0};
  };
  // Stage 1: 1 + 1 under way, 4 + 11 computed, 20 reduced; stage 0 is done long before.
  StepTimes one = simulateStep(schedule, 1, costs);
  EXPECT_DOUBLE_EQ(one.seconds, 1 + 1 + 15 + 0.75 + 5 + 0.125 + 0.5);
  EXPECT_DOUBLE_EQ(one.exposed[1], 0);
  StepTimes two = simulateStep(schedule, 2, costs);
  EXPECT_DOUBLE_EQ(two.seconds, 17 + 20 + 0.125 + 0.5);
  EXPECT_DOUBLE_EQ(two.exposed[1], 20);
  EXPECT_DOUBLE_EQ(two.exposed[0], 10);
  EXPECT_DOUBLE_EQ(two.exposed[3], 20);
  // In which stage 1 exchanges: its reduction, and the norm of all.
  ASSERT_EQ(two.exchanges[1].size(), 2u);
  EXPECT_DOUBLE_EQ(two.exchanges[1][0].start, 17);
  EXPECT_DOUBLE_EQ(two.exchanges[1][0].end, 37);
  EXPECT_DOUBLE_EQ(two.exchanges[1][1].end, 37.125);
  EXPECT_EQ(one.exchanges[1].size(), 1u);
}

// Replicas meet where a bucket of gradients is whole, and go on when each has added its part.
TEST(ScheduleSimulation, bucketsWithinTheBackwardFunction) {
  StepCosts costs;
  costs.chunks = {{1, 2, 6, 0, 0.5}};
  costs.chunks[0].weightBuckets = {{0.5, 1}, {1, 2}};
  Schedule schedule = makeSchedule(ScheduleKind::oneForwardOneBackward, chainOf(1, 1, 3));
  EXPECT_DOUBLE_EQ(simulateStep(schedule, 1, costs).seconds, 3 * 9 + 0.5);
  StepTimes two = simulateStep(schedule, 2, costs);
  EXPECT_DOUBLE_EQ(two.seconds, 3 * (9 + 3) + 0.5);
  EXPECT_DOUBLE_EQ(two.exposed[0], 9);
  EXPECT_DOUBLE_EQ(two.computing[1], 27.5);
  EXPECT_DOUBLE_EQ(two.spans[0][1].end - two.spans[0][1].start, 8 + 3);
  ASSERT_EQ(two.exchanges[0].size(), 6u);
  EXPECT_DOUBLE_EQ(two.exchanges[0][0].start, 1 + 2 + 3);
  EXPECT_DOUBLE_EQ(two.exchanges[0][0].end, 1 + 2 + 3 + 1);
  // Replicas are alike: a rank waits for what is exchanged alone, in every schedule.
  forEachSchedule([&](const Schedule &each) {
    costs.chunks.assign(each.pipeline.chunks(), {1, 1, 1, 0, 0});
    for (ChunkSeconds &chunk : costs.chunks) {
      chunk.inputBuckets = {{0.75, 0.125}};
      chunk.weightBuckets = {{0, 0.25}, {0.5, 0.125}};
    }
    const StepTimes times = simulateStep(each, 3, costs);
    for (size_t rank = 0; rank < times.exposed.size(); ++rank) {
      EXPECT_NEAR(times.exposed[rank],
                  0.5 * each.pipeline.microBatches * each.pipeline.chunksPerStage, 1e-9);
      EXPECT_GE(times.seconds, times.computing[rank] + times.exposed[rank] - 1e-9);
    }
  });
}

TEST(ScheduleSimulation, ranksThatCopyAndTheRest) {
  Schedule schedule = makeSchedule(ScheduleKind::oneForwardOneBackward, chainOf(2, 1, 1));
  StepCosts costs;
  costs.chunks = {{1, 2, 3, 0, 0.5}, {4, 5, 6, 0, 0.25}};
  costs.rest = 7;
  costs.transfer = [](int, bool ofGradients, int, int) {
    return ofGradients ? StepCosts::Transfer{0, 0, 0.5, 0.25} : StepCosts::Transfer{0, 0, 2, 3};
  };
  StepTimes times = simulateStep(schedule, 1, costs);
  EXPECT_DOUBLE_EQ(times.seconds, 1 + 2 + 3 + 15 + 0.5 + 0.25 + 5 + 0.5 + 7);
  EXPECT_DOUBLE_EQ(times.computing[0], 6.5);
  EXPECT_DOUBLE_EQ(times.bubble, 1 - (6.5 + 15.25) / (2 * times.seconds));
  EXPECT_DOUBLE_EQ(times.rest, 7);
  ASSERT_EQ(times.copies[1].size(), 2u);
  EXPECT_DOUBLE_EQ(times.copies[1][0].start, 3);
  EXPECT_DOUBLE_EQ(times.copies[1][0].end, 6);
  EXPECT_DOUBLE_EQ(times.copies[1][1].end - times.copies[1][1].start, 0.5);
}

TEST(ScheduleSimulation, sendsWaitForPlaces) {
  // Chunk 1 is slow: its places are full, and chunk 0 waits with the fourth activation.
  Schedule schedule = makeSchedule(ScheduleKind::oneForwardOneBackward, chainOf(2, 1, 6));
  EXPECT_EQ(schedule.activationPlaces, (std::vector<int>{2}));
  StepCosts costs;
  costs.chunks = {{1, 0, 0, 0, 0}, {10, 0, 0, 0, 0}};
  StepTimes times = simulateStep(schedule, 1, costs);
  EXPECT_DOUBLE_EQ(times.seconds, 61);
}

} // namespace
