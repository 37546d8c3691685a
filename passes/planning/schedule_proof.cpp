// SPDX-License-Identifier: Apache-2.0
//
// The proof of a schedule (schedule_proof.h): each stage's list is walked with what it
// holds, then the graph of waits is put in order.
#include "passes/planning/schedule_proof.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace trainc::planning {

namespace {

/// What waits for what: edges between actions numbered over all stages, in the order of
/// the stages. An action comes after the one before it on its stage, a receive after its
/// send, a send after the action that frees its place at the receiver; the norms of all
/// stages are one, so each comes after what any of them comes after.
struct ActionGraph {
  std::vector<int> firstOfStage; // and the number of actions at the end
  std::vector<std::vector<int>> after;
};

/// A message on its way: direction, boundary, micro-batch.
using Message = std::tuple<bool, int, int>;

Message messageOf(const Action &action) {
  return {isGradient(action.kind), action.boundary, action.microBatch};
}

/// Walks one stage's list.
class StageWalk {
public:
  StageWalk(const Schedule &schedule, int stage, std::vector<std::string> &faults)
      : schedule(schedule), pipeline(schedule.pipeline), stage(stage), faults(faults) {}

  void run() {
    for (current = 0; current < schedule.actions[stage].size(); ++current) {
      const Action &action = schedule.actions[stage][current];
      if (inRange(action))
        take(action);
    }
    for (int chunk = stage; chunk < pipeline.chunks(); chunk += pipeline.stages)
      finish(chunk);
    if (!normTaken)
      missing("the norm");
    if (!updated)
      missing("the update");
  }

private:
  enum class Phase { none, forward, inputGradient, done };

  const std::vector<int> &placesOf(ActionKind kind) const {
    return isGradient(kind) ? schedule.gradientPlaces : schedule.activationPlaces;
  }

  void fault(const std::string &what) {
    faults.push_back("stage " + std::to_string(stage) + ", action " + std::to_string(current) +
                     " (" + describe(schedule.actions[stage][current]) + "): " + what);
  }

  void missing(const std::string &what) {
    faults.push_back("stage " + std::to_string(stage) + ": " + what + " is missing");
  }

  bool inRange(const Action &action) {
    bool message = isSend(action.kind) || isReceive(action.kind);
    bool ofChunk = action.kind != ActionKind::norm && action.kind != ActionKind::update,
         ofBatch = isCompute(action.kind) || message;
    auto within = [&](bool applies, int number, int end, const char *what) {
      if (applies ? number >= 0 && number < end : number == -1)
        return true;
      fault(std::string("has a wrong ") + what);
      return false;
    };
    if (!within(ofChunk, action.chunk, pipeline.chunks(), "chunk") ||
        !within(ofBatch, action.microBatch, pipeline.microBatches, "micro-batch") ||
        !within(message, action.boundary, int(pipeline.boundaries.size()), "boundary") ||
        !within(message, action.peer, pipeline.stages, "peer"))
      return false;
    int slots = message   ? placesOf(action.kind)[action.boundary]
                : ofBatch ? schedule.stashSlots[action.chunk]
                          : 0;
    if (!within(ofBatch, action.slot, slots, "slot"))
      return false;
    if (ofChunk && pipeline.stageOf(action.chunk) != stage) {
      fault("the chunk is of stage " + std::to_string(pipeline.stageOf(action.chunk)));
      return false;
    }
    return true;
  }

  Phase &phaseOf(const Action &action) {
    return phases.try_emplace({action.chunk, action.microBatch}, Phase::none).first->second;
  }

  void expect(bool holds, const char *what) {
    if (!holds)
      fault(what);
  }

  void take(const Action &action) {
    expect(!normTaken || action.kind == ActionKind::update, "behind the norm");
    switch (action.kind) {
    case ActionKind::forward:
      return forward(action);
    case ActionKind::backward:
    case ActionKind::inputGradient:
      return backward(action);
    case ActionKind::weightGradient:
      expect(phaseOf(action) == Phase::inputGradient, "the input gradient is not there");
      return finishBatch(action);
    case ActionKind::sendActivation:
    case ActionKind::sendGradient:
      return send(action);
    case ActionKind::receiveActivation:
    case ActionKind::receiveGradient:
      return receive(action);
    case ActionKind::reduce:
      expect(batchesDone[action.chunk] == pipeline.microBatches,
             "gradients of the chunk are still to come");
      expect(reduced.insert(action.chunk).second, "taken twice");
      return;
    case ActionKind::norm:
      expect(!normTaken, "taken twice");
      normTaken = true;
      return;
    case ActionKind::update:
      expect(normTaken, "the norm is not known");
      expect(!updated, "taken twice");
      updated = true;
      return;
    }
  }

  void forward(const Action &action) {
    expect(phaseOf(action) == Phase::none, "taken twice");
    expect(action.microBatch == forwardNext[action.chunk]++, "out of the order of micro-batches");
    for (size_t i = 0; i < pipeline.boundaries.size(); ++i)
      if (pipeline.boundaries[i].to == action.chunk)
        expectInput(action, false, int(i));
    expect(stash.try_emplace({action.chunk, action.slot}, action.microBatch).second,
           "the slot is in use");
    phaseOf(action) = Phase::forward;
  }

  void backward(const Action &action) {
    expect(phaseOf(action) == Phase::forward, "the forward of the micro-batch is not the last");
    expect(action.microBatch == backwardNext[action.chunk]++, "out of the order of micro-batches");
    expectSlot(action);
    for (size_t i = 0; i < pipeline.boundaries.size(); ++i)
      if (pipeline.boundaries[i].from == action.chunk)
        expectInput(action, true, int(i));
    phaseOf(action) = Phase::inputGradient;
    if (action.kind == ActionKind::backward)
      finishBatch(action);
  }

  void expectInput(const Action &action, bool gradient, int boundary) {
    if (!received.count({gradient, boundary, action.microBatch}))
      fault((gradient ? "the gradient of boundary " : "the activation of boundary ") +
            std::to_string(boundary) + " is not there");
  }

  void expectSlot(const Action &action) {
    auto found = stash.find({action.chunk, action.slot});
    expect(found != stash.end() && found->second == action.microBatch,
           "the slot is not the forward's");
  }

  // Gradients are added in the order of micro-batches in every schedule.
  void finishBatch(const Action &action) {
    expect(action.microBatch == batchesDone[action.chunk]++, "out of the order of micro-batches");
    expectSlot(action);
    stash.erase({action.chunk, action.slot});
    phaseOf(action) = Phase::done;
    for (size_t i = 0; i < pipeline.boundaries.size(); ++i) {
      const Boundary &boundary = pipeline.boundaries[i];
      if (boundary.to == action.chunk)
        release({false, int(i), action.microBatch});
      if (boundary.from == action.chunk)
        release({true, int(i), action.microBatch});
    }
  }

  void release(const Message &message) {
    auto found = received.find(message);
    if (found == received.end())
      return;
    places.erase({std::get<0>(message), std::get<1>(message), found->second});
    received.erase(found);
  }

  bool peerIs(const Action &action, bool from) {
    const Boundary &boundary = pipeline.boundaries[action.boundary];
    int mine = from ? boundary.from : boundary.to, other = from ? boundary.to : boundary.from;
    expect(action.chunk == mine, "the boundary is not the chunk's");
    expect(action.peer == pipeline.stageOf(other),
           "the peer is not the stage at the other side of the boundary");
    return action.chunk == mine;
  }

  void send(const Action &action) {
    if (!peerIs(action, !isGradient(action.kind)))
      return;
    Phase phase = phaseOf(action);
    expect(isGradient(action.kind) ? phase >= Phase::inputGradient : phase == Phase::forward,
           "what it sends is not there");
    expect(sent.insert(messageOf(action)).second, "taken twice");
  }

  void receive(const Action &action) {
    if (!peerIs(action, isGradient(action.kind)))
      return;
    bool gradient = isGradient(action.kind);
    expect(phaseOf(action) == (gradient ? Phase::forward : Phase::none), "not where it is needed");
    expect(places.insert({gradient, action.boundary, action.slot}).second, "the place is in use");
    expect(received.emplace(messageOf(action), action.slot).second, "taken twice");
  }

  void finish(int chunk) {
    auto of = [&](const char *what, int batch) {
      missing(std::string(what) + " of chunk " + std::to_string(chunk) +
              (batch < 0 ? "" : ", micro-batch " + std::to_string(batch)));
    };
    for (int batch = 0; batch < pipeline.microBatches; ++batch)
      if (phases[{chunk, batch}] != Phase::done)
        of(phases[{chunk, batch}] == Phase::none ? "the forward" : "a gradient", batch);
    if (!reduced.count(chunk))
      of("the reduction", -1);
  }

  const Schedule &schedule;
  const Pipeline &pipeline;
  int stage;
  std::vector<std::string> &faults;
  size_t current = 0;
  std::map<std::pair<int, int>, Phase> phases;  // chunk, micro-batch
  std::map<int, int> forwardNext, backwardNext; // chunk -> micro-batch
  std::map<int, int> batchesDone;               // chunk
  std::map<std::pair<int, int>, int> stash;     // chunk, slot -> micro-batch
  std::set<std::tuple<bool, int, int>> places;  // direction, boundary, place
  std::map<Message, int> received;              // and not yet released: its place
  std::set<Message> sent;
  std::set<int> reduced; // chunks
  bool normTaken = false, updated = false;
};

/// Positions of messages, of what frees their places, and of the norms, where all stages meet.
class Waits {
public:
  explicit Waits(const Schedule &schedule) : schedule(schedule) {
    graph.firstOfStage.push_back(0);
    for (const auto &actions : schedule.actions)
      graph.firstOfStage.push_back(graph.firstOfStage.back() + int(actions.size()));
    graph.after.resize(graph.firstOfStage.back());
    for (size_t stage = 0; stage < schedule.actions.size(); ++stage)
      note(int(stage));
  }

  /// Sends and receives that do not match, in order and by place.
  void match(std::vector<std::string> &faults) {
    for (const auto &[channel, sends] : sendsOf) {
      const auto &receives = receivesOf[channel];
      for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
        if (i >= receives.size())
          faults.push_back(said(sends[i]) + ": no receive matches");
        else if (i >= sends.size())
          faults.push_back(said(receives[i]) + ": no send matches");
        else if (actionAt(sends[i]).microBatch != actionAt(receives[i]).microBatch ||
                 actionAt(sends[i]).slot != actionAt(receives[i]).slot)
          faults.push_back(said(receives[i]) + ": the message that arrives is " + said(sends[i]));
      }
    }
    for (const auto &[channel, receives] : receivesOf)
      if (!sendsOf.count(channel))
        for (int receive : receives)
          faults.push_back(said(receive) + ": no send matches");
  }

  ActionGraph build() {
    for (size_t stage = 0; stage < schedule.actions.size(); ++stage)
      for (int i = graph.firstOfStage[stage] + 1; i < graph.firstOfStage[stage + 1]; ++i)
        graph.after[i].push_back(i - 1);
    for (auto &[channel, sends] : sendsOf) {
      const std::vector<int> &receives = receivesOf[channel];
      std::map<int, int> freedBy; // place -> the action that frees it of the message before
      for (size_t i = 0; i < std::min(sends.size(), receives.size()); ++i) {
        graph.after[receives[i]].push_back(sends[i]);
        const Action &receive = actionAt(receives[i]);
        auto before = freedBy.find(receive.slot);
        if (before != freedBy.end())
          graph.after[sends[i]].push_back(before->second);
        freedBy[receive.slot] = freesAt[{receive.chunk, receive.microBatch}];
      }
    }
    for (int member : norms)
      for (int other : norms)
        if (other != member && other != graph.firstOfStage[stageAt(other)])
          graph.after[member].push_back(other - 1);
    return std::move(graph);
  }

  std::string said(int number) const {
    int stage = stageAt(number);
    return "stage " + std::to_string(stage) + ", action " +
           std::to_string(number - graph.firstOfStage[stage]) + " (" + describe(actionAt(number)) +
           ")";
  }

private:
  int stageAt(int number) const {
    return int(std::upper_bound(graph.firstOfStage.begin(), graph.firstOfStage.end(), number) -
               graph.firstOfStage.begin()) -
           1;
  }

  const Action &actionAt(int number) const {
    int stage = stageAt(number);
    return schedule.actions[stage][number - graph.firstOfStage[stage]];
  }

  void note(int stage) {
    int number = graph.firstOfStage[stage];
    for (const Action &action : schedule.actions[stage]) {
      std::pair<bool, int> channel{isGradient(action.kind), action.boundary};
      if (isSend(action.kind))
        sendsOf[channel].push_back(number);
      else if (isReceive(action.kind))
        receivesOf[channel].push_back(number);
      else if (action.kind == ActionKind::backward || action.kind == ActionKind::weightGradient)
        freesAt[{action.chunk, action.microBatch}] = number;
      else if (action.kind == ActionKind::norm)
        norms.push_back(number);
      ++number;
    }
  }

  const Schedule &schedule;
  ActionGraph graph;
  std::map<std::pair<bool, int>, std::vector<int>> sendsOf, receivesOf; // direction, boundary
  std::map<std::pair<int, int>, int> freesAt;                           // chunk, micro-batch
  std::vector<int> norms;
};

/// The first action of the lowest stage that never gets its turn, -1 where all do.
int firstStuck(const ActionGraph &graph) {
  std::vector<int> waits(graph.after.size());
  std::vector<std::vector<int>> wakes(graph.after.size());
  std::vector<int> ready;
  for (size_t i = 0; i < graph.after.size(); ++i) {
    waits[i] = int(graph.after[i].size());
    for (int before : graph.after[i])
      wakes[before].push_back(int(i));
    if (!waits[i])
      ready.push_back(int(i));
  }
  while (!ready.empty()) {
    int taken = ready.back();
    ready.pop_back();
    for (int next : wakes[taken])
      if (--waits[next] == 0)
        ready.push_back(next);
  }
  for (size_t i = 0; i < waits.size(); ++i)
    if (waits[i] > 0)
      return int(i);
  return -1;
}

} // namespace

std::vector<std::string> faultsOf(const Schedule &schedule, size_t most) {
  std::vector<std::string> faults;
  for (int stage = 0; stage < schedule.pipeline.stages; ++stage)
    StageWalk(schedule, stage, faults).run();
  Waits waits(schedule);
  waits.match(faults);
  if (faults.empty())
    if (int stuck = firstStuck(waits.build()); stuck >= 0)
      faults.push_back(Waits(schedule).said(stuck) + ": waits for a stage that waits for this one");
  if (faults.size() > most)
    faults.resize(most);
  return faults;
}

} // namespace trainc::planning
