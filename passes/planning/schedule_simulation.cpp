// SPDX-License-Identifier: Apache-2.0
//
// Each rank goes on until it needs what is not there yet; who makes it wakes it
// (schedule_simulation.h). Times are maxima and sums of what an action waits for, so the
// order in which ranks are taken does not matter.
#include "passes/planning/schedule_simulation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace trainc::planning {

namespace {

constexpr double unknown = -1;

/// All members' arrival decides when a collective starts.
struct Gathering {
  int expected = 0, arrived = 0;
  double start = 0;
  std::vector<int> waiting; // ranks

  bool complete() const { return arrived == expected; }
};

class Simulation {
public:
  Simulation(const Schedule &schedule, int replicas, const StepCosts &costs)
      : schedule(schedule), pipeline(schedule.pipeline), replicas(replicas), costs(costs),
        ranks(size_t(pipeline.stages) * replicas) {
    size_t boundaries = pipeline.boundaries.size();
    placeCount.resize(2 * boundaries);
    for (size_t i = 0; i < boundaries; ++i) {
      placeCount[2 * i] = schedule.activationPlaces[i];
      placeCount[2 * i + 1] = schedule.gradientPlaces[i];
    }
    size_t channels = 2 * boundaries * replicas;
    arrivals.assign(channels, std::vector<double>(pipeline.microBatches, unknown));
    releases = arrivals;
    receiverOf.assign(channels, -1);
    senderOf = receiverOf;
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].linkFree.assign(pipeline.stages, 0);
      ranks[i].reduceEnd.assign(pipeline.chunks(), 0);
    }
    norm.expected = int(ranks.size());
    meetings.resize(2 * size_t(pipeline.stages));
    for (Gathering &gathering : meetings)
      gathering.expected = replicas;
    for (const ChunkSeconds &chunk : costs.chunks)
      together.push_back(bothBuckets(chunk));
    reductions.resize(size_t(pipeline.chunks()));
    for (Gathering &gathering : reductions)
      gathering.expected = replicas;
    for (std::vector<std::vector<Span>> *spans : {&times.spans, &times.exchanges, &times.copies})
      spans->resize(pipeline.stages);
    for (int stage = 0; stage < pipeline.stages; ++stage)
      times.spans[stage].resize(schedule.actions[stage].size());
  }

  StepTimes run() {
    for (size_t i = 0; i < ranks.size(); ++i)
      ready.push_back(int(ranks.size() - 1 - i));
    while (!ready.empty()) {
      int rank = ready.back();
      ready.pop_back();
      goOn(rank);
    }
    double computing = 0;
    for (const Rank &rank : ranks) {
      times.seconds = std::max(times.seconds, rank.clock);
      times.computing.push_back(rank.computing);
      times.exposed.push_back(rank.exposed);
      computing += rank.computing;
    }
    times.seconds += costs.rest;
    times.rest = costs.rest;
    if (times.seconds > 0)
      times.bubble = 1 - computing / (times.seconds * double(ranks.size()));
    return std::move(times);
  }

private:
  struct Rank {
    size_t next = 0;     // action
    bool posted = false; // the next action, a collective or a bucket of it, counts already
    size_t bucket = 0;   // of the next action: those before it are added
    int meeting = 0;     // of the two of its stage that take turns
    double begun = 0;    // the next action
    double clock = 0, computing = 0, exposed = 0;
    double reduceFree = 0;         // when the link of reductions is
    std::vector<double> linkFree;  // by peer
    std::vector<double> reduceEnd; // by chunk; unknown while members are missing
  };

  int stageOf(int rank) const { return rank % pipeline.stages; }
  int replicaOf(int rank) const { return rank / pipeline.stages; }

  size_t channelOf(const Action &action, int rank) const {
    return (size_t(action.boundary) * 2 + isGradient(action.kind)) * replicas + replicaOf(rank);
  }

  void goOn(int rank) {
    const std::vector<Action> &actions = schedule.actions[stageOf(rank)];
    Rank &state = ranks[rank];
    while (state.next < actions.size()) {
      if (!state.posted && state.bucket == 0)
        state.begun = state.clock;
      if (!take(rank, actions[state.next]))
        return;
      if (replicaOf(rank) == 0)
        times.spans[stageOf(rank)][state.next] = {state.begun, state.clock};
      ++state.next;
    }
  }

  void wake(int &rank) {
    if (rank >= 0)
      ready.push_back(rank);
    rank = -1;
  }

  void note(std::vector<std::vector<Span>> &spans, int rank, Span span) {
    if (replicaOf(rank) == 0 && span.end > span.start)
      spans[stageOf(rank)].push_back(span);
  }

  void compute(Rank &state, double seconds) {
    state.clock += seconds;
    state.computing += seconds;
  }

  /// One function with the buckets of both.
  static std::vector<BucketSeconds> bothBuckets(const ChunkSeconds &chunk) {
    const double all = chunk.inputGradient + chunk.weightGradient,
                 first = all > 0 ? chunk.inputGradient / all : 0;
    std::vector<BucketSeconds> both;
    for (const BucketSeconds &bucket : chunk.inputBuckets)
      both.push_back({bucket.behind * (chunk.weightBuckets.empty() ? 1 : first), bucket.exchange});
    for (const BucketSeconds &bucket : chunk.weightBuckets)
      both.push_back({first + bucket.behind * (1 - first), bucket.exchange});
    return both;
  }

  /// A function during which replicas add buckets. False where the rank has to wait for others.
  bool compute(int rank, double seconds, const std::vector<BucketSeconds> &buckets) {
    Rank &state = ranks[rank];
    if (replicas == 1 || buckets.empty()) {
      compute(state, seconds);
      return true;
    }
    for (; state.bucket <= buckets.size(); ++state.bucket) {
      const bool isEnd = state.bucket == buckets.size();
      Gathering &gathering = meetings[2 * size_t(stageOf(rank)) + size_t(state.meeting)];
      if (!state.posted) {
        const double from = state.bucket > 0 ? buckets[state.bucket - 1].behind : 0;
        compute(state, seconds * ((isEnd ? 1 : buckets[state.bucket].behind) - from));
        if (gathering.complete()) { // of the time before the last one
          gathering.arrived = 0;
          gathering.waiting.clear();
        }
        meet(gathering, state);
      }
      if (!gathering.complete()) {
        gathering.waiting.push_back(rank);
        return false;
      }
      const double end = gathering.start + (isEnd ? 0 : buckets[state.bucket].exchange);
      state.exposed += end - state.clock;
      note(times.exchanges, rank, {state.clock, end});
      state.clock = end;
      state.posted = false;
      state.meeting = 1 - state.meeting;
    }
    state.bucket = 0;
    return true;
  }

  void meet(Gathering &gathering, Rank &state) {
    state.posted = true;
    gathering.start = std::max(gathering.start, state.clock);
    if (++gathering.arrived == gathering.expected)
      for (int &waiting : gathering.waiting)
        wake(waiting);
  }

  /// False where the rank has to wait for another; it is woken.
  bool take(int rank, const Action &action) {
    Rank &state = ranks[rank];
    switch (action.kind) {
    case ActionKind::forward:
      compute(state, costs.chunks[action.chunk].forward);
      return true;
    case ActionKind::inputGradient:
      return compute(rank, costs.chunks[action.chunk].inputGradient,
                     costs.chunks[action.chunk].inputBuckets);
    case ActionKind::backward:
      if (!compute(rank,
                   costs.chunks[action.chunk].inputGradient +
                       costs.chunks[action.chunk].weightGradient,
                   together[action.chunk]))
        return false;
      release(rank, action);
      return true;
    case ActionKind::weightGradient:
      if (!compute(rank, costs.chunks[action.chunk].weightGradient,
                   costs.chunks[action.chunk].weightBuckets))
        return false;
      release(rank, action);
      return true;
    case ActionKind::sendActivation:
    case ActionKind::sendGradient:
      return send(rank, action);
    case ActionKind::receiveActivation:
    case ActionKind::receiveGradient:
      return receive(rank, action);
    case ActionKind::reduce:
      postReduce(rank, action.chunk);
      return true;
    case ActionKind::norm:
      return gather(rank, norm, costs.norm);
    case ActionKind::update:
      for (int chunk = stageOf(rank); chunk < pipeline.chunks(); chunk += pipeline.stages)
        compute(state, costs.chunks[chunk].update);
      return true;
    }
    return true;
  }

  StepCosts::Transfer transferOf(const Action &message, int from, int to) const {
    if (!costs.transfer)
      return {};
    return costs.transfer(message.boundary, isGradient(message.kind), from, to);
  }

  bool send(int rank, const Action &action) {
    Rank &state = ranks[rank];
    size_t channel = channelOf(action, rank);
    int before =
        action.microBatch - placeCount[size_t(action.boundary) * 2 + isGradient(action.kind)];
    if (before >= 0) {
      if (releases[channel][before] == unknown) {
        senderOf[channel] = rank;
        return false;
      }
      state.clock = std::max(state.clock, releases[channel][before]);
    }
    int peer = replicaOf(rank) * pipeline.stages + action.peer;
    StepCosts::Transfer transfer = transferOf(action, rank, peer);
    note(times.copies, rank, {state.clock, state.clock + transfer.sending});
    state.clock += transfer.sending;
    double start = std::max(state.clock, state.linkFree[action.peer]);
    state.linkFree[action.peer] = start + transfer.occupied;
    arrivals[channel][action.microBatch] = start + transfer.occupied + transfer.latency;
    wake(receiverOf[channel]);
    return true;
  }

  bool receive(int rank, const Action &action) {
    size_t channel = channelOf(action, rank);
    double arrival = arrivals[channel][action.microBatch];
    if (arrival == unknown) {
      receiverOf[channel] = rank;
      return false;
    }
    int peer = replicaOf(rank) * pipeline.stages + action.peer;
    const double start = std::max(ranks[rank].clock, arrival);
    ranks[rank].clock = start + transferOf(action, peer, rank).receiving;
    note(times.copies, rank, {start, ranks[rank].clock});
    return true;
  }

  void release(int rank, const Action &action) {
    for (size_t i = 0; i < pipeline.boundaries.size(); ++i)
      for (bool gradient : {false, true}) {
        const Boundary &boundary = pipeline.boundaries[i];
        if ((gradient ? boundary.from : boundary.to) != action.chunk)
          continue;
        size_t channel = (i * 2 + gradient) * replicas + replicaOf(rank);
        releases[channel][action.microBatch] = ranks[rank].clock;
        wake(senderOf[channel]);
      }
  }

  void postReduce(int rank, int chunk) {
    Gathering &gathering = reductions[chunk];
    Rank &state = ranks[rank];
    gathering.start = std::max({gathering.start, state.clock, state.reduceFree});
    state.reduceEnd[chunk] = unknown;
    if (++gathering.arrived < gathering.expected)
      return;
    double end = gathering.start + (replicas > 1 ? costs.chunks[chunk].reduce : 0);
    for (int replica = 0; replica < replicas; ++replica) {
      int member = replica * pipeline.stages + stageOf(rank);
      ranks[member].reduceEnd[chunk] = end;
      ranks[member].reduceFree = std::max(ranks[member].reduceFree, end);
      const std::vector<Action> &actions = schedule.actions[stageOf(rank)];
      if (member != rank && ranks[member].next < actions.size())
        ready.push_back(member);
    }
  }

  // What is gathered is made of reduced gradients.
  bool gather(int rank, Gathering &gathering, double seconds) {
    Rank &state = ranks[rank];
    if (!state.posted) {
      double reduced = *std::max_element(state.reduceEnd.begin(), state.reduceEnd.end());
      if (std::count(state.reduceEnd.begin(), state.reduceEnd.end(), unknown))
        return false; // the last member of the reduction wakes it
      state.exposed += std::max(0.0, reduced - state.clock);
      note(times.exchanges, rank, {state.clock, reduced});
      state.clock = std::max(state.clock, reduced);
      meet(gathering, state);
    }
    if (!gathering.complete()) {
      gathering.waiting.push_back(rank);
      return false;
    }
    state.posted = false;
    state.clock = gathering.start + seconds;
    note(times.exchanges, rank, {gathering.start, state.clock});
    return true;
  }

  const Schedule &schedule;
  const Pipeline &pipeline;
  int replicas;
  const StepCosts &costs;
  std::vector<Rank> ranks;
  std::vector<int> ready;
  // By boundary, direction and replica: when message or place of a micro-batch is there, who waits.
  std::vector<std::vector<double>> arrivals, releases;
  std::vector<int> receiverOf, senderOf, placeCount;
  Gathering norm;
  std::vector<Gathering> reductions;
  // Two of each stage: when replicas meet in one, all have left it since the meeting before last.
  std::vector<Gathering> meetings;
  std::vector<std::vector<BucketSeconds>> together; // of functions that have both gradients
  StepTimes times;
};

std::string cellOf(const Pipeline &pipeline, const Action &action) {
  std::string number = std::to_string(action.microBatch);
  if (pipeline.chunksPerStage > 1)
    number += char('a' + action.chunk / pipeline.stages % 26);
  if (action.kind == ActionKind::forward)
    return number;
  return number + (action.kind == ActionKind::weightGradient ? "\"" : "'");
}

/// From the first to after the last, of `columns`; none of what is too short.
std::pair<size_t, size_t> columnsOf(const Span &span, double unit, size_t columns) {
  auto column = [&](double time) {
    return std::min(columns, size_t(std::max(0.0, std::floor(time / unit + 0.5))));
  };
  return {column(span.start), column(span.end)};
}

/// What of the passes that take time has no column; empty where each has one.
std::string leftOut(const Schedule &schedule, const StepTimes &times, double unit, size_t columns) {
  size_t passes = 0, missing = 0;
  std::set<int> microBatches; // of those that are missing
  for (size_t stage = 0; stage < schedule.actions.size(); ++stage)
    for (size_t i = 0; i < schedule.actions[stage].size(); ++i) {
      const Action &action = schedule.actions[stage][i];
      const Span &span = times.spans[stage][i];
      if (!isCompute(action.kind) || span.end <= span.start)
        continue;
      ++passes;
      if (auto [first, end] = columnsOf(span, unit, columns); first < end)
        continue;
      ++missing;
      microBatches.insert(action.microBatch);
    }
  if (missing == 0)
    return "";
  return "left out, as shorter than a column: " + std::to_string(missing) + " of " +
         std::to_string(passes) + " passes, of " + std::to_string(microBatches.size()) + " of " +
         std::to_string(schedule.pipeline.microBatches) + " micro-batches\n";
}

} // namespace

StepTimes simulateStep(const Schedule &schedule, int replicas, const StepCosts &costs) {
  return Simulation(schedule, replicas, costs).run();
}

std::string gridOf(const Schedule &schedule, const StepTimes &times, double unit) {
  size_t columns = size_t(std::ceil(times.seconds / unit - 1e-6));
  std::vector<std::vector<std::string>> cells(schedule.actions.size(),
                                              std::vector<std::string>(columns, "."));
  size_t width = 1;
  for (size_t stage = 0; stage < cells.size(); ++stage)
    for (size_t i = 0; i < schedule.actions[stage].size(); ++i) {
      const Action &action = schedule.actions[stage][i];
      bool update = action.kind == ActionKind::update;
      if (!isCompute(action.kind) && !update)
        continue;
      std::string cell = update ? "U" : cellOf(schedule.pipeline, action);
      width = std::max(width, cell.size());
      auto [first, end] = columnsOf(times.spans[stage][i], unit, columns);
      for (size_t column = first; column < end; ++column)
        cells[stage][column] = cell;
    }
  std::string text;
  for (size_t stage = 0; stage < cells.size(); ++stage) {
    text += "stage " + std::to_string(stage) + " |";
    for (const std::string &cell : cells[stage])
      text += " " + std::string(width - cell.size(), ' ') + cell;
    text += "\n";
  }
  return text + leftOut(schedule, times, unit, columns);
}

} // namespace trainc::planning
