// SPDX-License-Identifier: Apache-2.0
//
// Orders of the four schedules; what follows from an order (pipeline_schedule.h).
#include "passes/planning/pipeline_schedule.h"

#include <algorithm>
#include <iterator>

namespace trainc::planning {

namespace {

Action computeOf(ActionKind kind, int chunk, int microBatch) {
  Action action{kind};
  action.chunk = chunk;
  action.microBatch = microBatch;
  return action;
}

using ActionList = std::vector<Action>;

ActionList allForwardThenBackward(const Pipeline &pipeline, int stage) {
  ActionList order;
  for (int i = 0; i < pipeline.microBatches; ++i)
    order.push_back(computeOf(ActionKind::forward, stage, i));
  for (int i = 0; i < pipeline.microBatches; ++i)
    order.push_back(computeOf(ActionKind::backward, stage, i));
  return order;
}

// Micro-batches go through a stage's chunks in rounds: as many as there are stages through
// the first chunk, then through the second, and so on. With one chunk this is plain 1F1B.
ActionList forwardBackwardInTurn(const Pipeline &pipeline, int stage) {
  int stages = pipeline.stages, chunks = pipeline.chunksPerStage;
  int all = pipeline.microBatches * chunks;
  auto nth = [&](ActionKind kind, int i) {
    int round = i / (stages * chunks), inRound = i % (stages * chunks);
    int local = inRound / stages;
    if (kind == ActionKind::backward)
      local = chunks - 1 - local;
    return computeOf(kind, local * stages + stage, round * stages + inRound % stages);
  };
  int ahead = chunks == 1 ? stages - stage - 1 : 2 * (stages - stage - 1) + (chunks - 1) * stages;
  ahead = std::min(ahead, all);
  ActionList order;
  for (int i = 0; i < ahead; ++i)
    order.push_back(nth(ActionKind::forward, i));
  for (int i = 0; i < all; ++i) {
    if (ahead + i < all)
      order.push_back(nth(ActionKind::forward, ahead + i));
    order.push_back(nth(ActionKind::backward, i));
  }
  return order;
}

// As many forwards ahead as in 1F1B; weight gradients follow input gradients after as many
// micro-batches as the stage has before it. So all stages have as many micro-batches in flight
// as there are stages, and the last weight gradients fill the end.
ActionList zeroBubble(const Pipeline &pipeline, int stage) {
  int ahead = std::min(pipeline.stages - stage, pipeline.microBatches);
  ActionList order;
  for (int i = 0; i < ahead; ++i)
    order.push_back(computeOf(ActionKind::forward, stage, i));
  for (int i = 0; i < pipeline.microBatches; ++i) {
    order.push_back(computeOf(ActionKind::inputGradient, stage, i));
    if (i >= stage)
      order.push_back(computeOf(ActionKind::weightGradient, stage, i - stage));
    if (ahead + i < pipeline.microBatches)
      order.push_back(computeOf(ActionKind::forward, stage, ahead + i));
  }
  for (int i = std::max(0, pipeline.microBatches - stage); i < pipeline.microBatches; ++i)
    order.push_back(computeOf(ActionKind::weightGradient, stage, i));
  return order;
}

ActionList orderOf(ScheduleKind kind, const Pipeline &pipeline, int stage) {
  switch (kind) {
  case ScheduleKind::gpipe:
    return allForwardThenBackward(pipeline, stage);
  case ScheduleKind::oneForwardOneBackward:
  case ScheduleKind::interleaved:
    return forwardBackwardInTurn(pipeline, stage);
  case ScheduleKind::zeroBubble:
    return zeroBubble(pipeline, stage);
  }
  return {};
}

bool frees(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::weightGradient;
}

bool startsBackward(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::inputGradient;
}

/// Most micro-batches of a chunk between `begins` and the action that frees its slot.
template <typename Begins> int mostInFlight(const ActionList &order, int chunk, Begins begins) {
  int now = 0, most = 0;
  for (const Action &action : order) {
    if (action.chunk != chunk)
      continue;
    most = std::max(most, now += begins(action.kind));
    now -= frees(action.kind);
  }
  return most;
}

class Builder {
public:
  Builder(ScheduleKind kind, const Pipeline &pipeline) {
    schedule.pipeline = pipeline;
    schedule.kind = kind;
  }

  Schedule run() {
    for (int stage = 0; stage < schedule.pipeline.stages; ++stage)
      orders.push_back(orderOf(schedule.kind, schedule.pipeline, stage));
    countSlots();
    schedule.actions.resize(orders.size());
    for (size_t stage = 0; stage < orders.size(); ++stage) {
      for (const Action &action : orders[stage])
        addCompute(int(stage), action);
      addEnd(int(stage));
    }
    return std::move(schedule);
  }

private:
  int stageOf(int chunk) const { return schedule.pipeline.stageOf(chunk); }

  void countSlots() {
    const Pipeline &pipeline = schedule.pipeline;
    std::vector<int> forGradients;
    for (int chunk = 0; chunk < pipeline.chunks(); ++chunk) {
      const ActionList &order = orders[stageOf(chunk)];
      schedule.stashSlots.push_back(
          mostInFlight(order, chunk, [](ActionKind kind) { return kind == ActionKind::forward; }));
      forGradients.push_back(mostInFlight(order, chunk, startsBackward));
    }
    for (const Boundary &boundary : pipeline.boundaries) {
      int from = schedule.stashSlots[boundary.from], to = schedule.stashSlots[boundary.to];
      int gradients = forGradients[boundary.from] + 1;
      if (boundary.to > boundary.from + 1) // others pass the stages between meanwhile
        gradients = std::max(gradients, from);
      schedule.activationPlaces.push_back(std::min(pipeline.microBatches, std::max(from, to + 1)));
      schedule.gradientPlaces.push_back(std::min(pipeline.microBatches, gradients));
    }
  }

  // A chunk's messages come before what reads them and after what makes them.
  void addCompute(int stage, Action action) {
    action.slot = action.microBatch % schedule.stashSlots[action.chunk];
    if (action.kind == ActionKind::forward)
      addMessages(stage, action, ActionKind::receiveActivation);
    else if (startsBackward(action.kind))
      addMessages(stage, action, ActionKind::receiveGradient);
    schedule.actions[stage].push_back(action);
    if (action.kind == ActionKind::forward)
      addMessages(stage, action, ActionKind::sendActivation);
    else if (startsBackward(action.kind))
      addMessages(stage, action, ActionKind::sendGradient);
    if (frees(action.kind) && action.microBatch == schedule.pipeline.microBatches - 1) {
      Action reduce{ActionKind::reduce};
      reduce.chunk = action.chunk;
      schedule.actions[stage].push_back(reduce);
    }
  }

  void addMessages(int stage, const Action &compute, ActionKind kind) {
    bool gradient = isGradient(kind);
    bool here = isSend(kind) != gradient; // this chunk makes the boundary's tensors
    for (size_t i = 0; i < schedule.pipeline.boundaries.size(); ++i) {
      const Boundary &boundary = schedule.pipeline.boundaries[i];
      if ((here ? boundary.from : boundary.to) != compute.chunk)
        continue;
      Action message = computeOf(kind, compute.chunk, compute.microBatch);
      message.boundary = int(i);
      message.peer = stageOf(here ? boundary.to : boundary.from);
      int places = (gradient ? schedule.gradientPlaces : schedule.activationPlaces)[i];
      message.slot = compute.microBatch % places;
      schedule.actions[stage].push_back(message);
    }
  }

  void addEnd(int stage) {
    schedule.actions[stage].push_back({ActionKind::norm});
    schedule.actions[stage].push_back({ActionKind::update});
  }

  Schedule schedule;
  std::vector<ActionList> orders;
};

} // namespace

const char *nameOf(ScheduleKind kind) {
  static constexpr const char *names[] = {"gpipe", "1f1b", "interleaved", "zb-h1"};
  return names[int(kind)];
}

std::optional<ScheduleKind> scheduleKind(std::string_view name) {
  for (ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::oneForwardOneBackward,
                            ScheduleKind::interleaved, ScheduleKind::zeroBubble})
    if (name == nameOf(kind))
      return kind;
  return std::nullopt;
}

const char *nameOf(ActionKind kind) {
  static constexpr const char *names[] = {"forward",         "backward",
                                          "input gradient",  "weight gradient",
                                          "send activation", "receive activation",
                                          "send gradient",   "receive gradient",
                                          "reduce",          "norm",
                                          "update"};
  static_assert(std::size(names) == size_t(ActionKind::update) + 1);
  return names[int(kind)];
}

bool isCompute(ActionKind kind) {
  return kind == ActionKind::forward || startsBackward(kind) || frees(kind);
}

bool isSend(ActionKind kind) {
  return kind == ActionKind::sendActivation || kind == ActionKind::sendGradient;
}

bool isReceive(ActionKind kind) {
  return kind == ActionKind::receiveActivation || kind == ActionKind::receiveGradient;
}

std::string unfit(ScheduleKind kind, const Pipeline &pipeline) {
  auto number = [](int n) { return std::to_string(n); };
  if (pipeline.microBatches < 1)
    return "a step has at least one micro-batch";
  if (kind != ScheduleKind::interleaved)
    return pipeline.chunksPerStage == 1
               ? ""
               : std::string(nameOf(kind)) + " has one chunk per stage, not " +
                     number(pipeline.chunksPerStage) + ": only interleaved has more";
  if (pipeline.chunksPerStage < 2)
    return "interleaved needs at least 2 chunks per stage: with one it is 1f1b";
  if (pipeline.microBatches % pipeline.stages)
    return "interleaved needs a multiple of its " + number(pipeline.stages) +
           " stages as micro-batches, not " + number(pipeline.microBatches);
  return "";
}

Schedule makeSchedule(ScheduleKind kind, const Pipeline &pipeline) {
  return Builder(kind, pipeline).run();
}

std::string describe(const Action &action) {
  std::string text = nameOf(action.kind);
  auto add = [&, separator = " of "](const char *word, int number) mutable {
    if (number < 0)
      return;
    text += separator + std::string(word) + " " + std::to_string(number);
    separator = ", ";
  };
  add("chunk", action.chunk);
  add("micro-batch", action.microBatch);
  add("boundary", action.boundary);
  add("peer", action.peer);
  add("slot", action.slot);
  return text;
}

} // namespace trainc::planning
