// SPDX-License-Identifier: Apache-2.0
//
// Replicas add their gradients as the runtime does (runtime/ranks/gradient_parts.h): each rank adds
// one part of the elements for all, so it sends a part to every other and its total back to all.
// The bytes to ranks of its host and those to others go at the same time.
#include "tools/simulate/step_costs.h"
#include "runtime/failure.h"
#include "tools/simulate/json_document.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace trainc::simulate {

using nlohmann::json;

namespace {

[[noreturn]] void refuse(const std::string &path, const std::string &what) {
  throw failure(exit_data, path + ": " + what + "\n  try: trainer profile -o FILE again");
}

class ProfileReader {
public:
  ProfileReader(std::string path, const StagePlan &plan) : path(std::move(path)), plan(plan) {}

  Profile run() {
    const json document = readDocument(path);
    const int stages = plan.schedule.pipeline.stages;
    profile.stages = int(number(document, "stages"));
    profile.replicas = int(number(document, "replicas"));
    profile.seconds = number(document, "seconds");
    if (profile.stages != stages || profile.replicas < 1)
      refuse(path, "is of a program with " + std::to_string(profile.stages) + " stages, and " +
                       plan.folder + " has " + std::to_string(stages));
    profile.shared = plan.stages().shared;
    if (auto shard = document.find("shard"); shard != document.end() && *shard == "optimizer")
      profile.shared = sharing::state;
    profile.chunks.resize(plan.chunks().size());
    for (const json &rank : list(document, "ranks"))
      addRank(rank);
    if (ranks != profile.stages * profile.replicas)
      refuse(path, "has " + std::to_string(ranks) + " ranks, expected " +
                       std::to_string(profile.stages * profile.replicas));
    profile.rest /= ranks;
    return std::move(profile);
  }

private:
  /// `kind` says what it has to be.
  template <typename Check>
  const json &member(const json &object, const char *name, const char *kind, Check isRight) const {
    auto found = object.find(name);
    if (found == object.end() || !isRight(*found))
      refuse(path, "has no " + std::string(kind) + " '" + name + "' where one is expected");
    return *found;
  }

  double number(const json &object, const char *name) const {
    return member(object, name, "number", [](const json &value) {
      return value.is_number() && std::abs(value.get<double>()) <= 1e15;
    });
  }

  const json &list(const json &object, const char *name) const {
    return member(object, name, "list", [](const json &value) { return value.is_array(); });
  }

  std::string text(const json &object, const char *name) const {
    return member(object, name, "text", [](const json &value) { return value.is_string(); });
  }

  void addRank(const json &rank) {
    ++ranks;
    const json &entries = list(rank, "entries");
    const double stage = number(rank, "stage");
    if (!(stage >= 0 && stage < profile.stages))
      refuse(path, "has a rank of stage " + std::to_string(stage));
    for (size_t chunk = size_t(stage); chunk < plan.chunks().size();
         chunk += size_t(profile.stages))
      checkEntries(entries, plan.chunks()[chunk]);
    for (const json &action : list(rank, "actions"))
      addAction(action, int(stage));
  }

  /// The program must be the plan's: as many steps in each entry function.
  void checkEntries(const json &entries, const planned_chunk &chunk) const {
    for (const std::string &name : {chunk.forward, chunk.backward, chunk.weight_gradient}) {
      const size_t expected = name.empty() ? 0 : plan.whole.find(name)->steps.size();
      if (expected == 0)
        continue;
      auto found = std::find_if(entries.begin(), entries.end(),
                                [&](const json &entry) { return text(entry, "entry") == name; });
      const size_t steps = found == entries.end() ? 0 : list(*found, "steps").size();
      if (steps != expected)
        refuse(path, "is of another program: '" + name + "' has " + std::to_string(steps) +
                         " steps, and " + std::to_string(expected) + " in " + plan.folder);
    }
  }

  void addAction(const json &action, int stage) {
    const std::string kind = text(action, "action");
    const double seconds = std::max(0.0, number(action, "seconds")) / profile.replicas;
    const double number = action.contains("chunk") ? this->number(action, "chunk") : stage;
    if (!(number >= 0 && number < double(profile.chunks.size())))
      refuse(path, "has an action '" + kind + "' of a chunk that " + plan.folder + " has not");
    ProfiledChunk &chunk = profile.chunks[size_t(number)];
    const bool isGradient =
        kind == "backward" || kind == "input gradient" || kind == "weight gradient";
    if (isGradient && plan.stages().shared == sharing::gradients)
      (kind == "input gradient" ? chunk.inputWaiting : chunk.weightWaiting) +=
          std::max(0.0, this->number(action, "waiting")) / profile.replicas;
    if (kind == "forward")
      chunk.seconds.forward += seconds;
    else if (kind == "input gradient")
      chunk.seconds.inputGradient += seconds;
    else if (kind == "weight gradient")
      chunk.seconds.weightGradient += seconds;
    else if (kind == "backward") {
      const double share = plan.chunks()[size_t(number)].weight_gradient_share;
      chunk.seconds.inputGradient += seconds * (1 - share);
      chunk.seconds.weightGradient += seconds * share;
    } else if (kind == "reduce")
      chunk.exchange += seconds;
    else if (kind == "norm")
      profile.meeting += seconds / profile.stages;
    else if (kind == "update")
      chunk.seconds.update += seconds;
    else if (kind == "rest")
      profile.rest += seconds * profile.replicas;
    else
      addMessage(kind, action, seconds);
  }

  void addMessage(const std::string &kind, const json &action, double seconds) {
    const bool isSend = kind.rfind("send ", 0) == 0;
    const bool ofGradients = kind == "send gradient" || kind == "receive gradient";
    const double boundary = number(action, "boundary");
    if ((!ofGradients && kind != "send activation" && kind != "receive activation") ||
        !(boundary >= 0 && boundary < double(plan.stages().boundaries.size())))
      refuse(path, "has an action '" + kind + "' that " + plan.folder + " has not");
    auto &[sending, receiving] = profile.messages[{int(boundary), ofGradients}];
    (isSend ? sending : receiving) += seconds;
  }

  const std::string path;
  const StagePlan &plan;
  Profile profile;
  int ranks = 0;
};

double rooflineOf(const StagePlan &plan, const std::string &entry, const Device &device) {
  double seconds = 0;
  if (!entry.empty())
    for (const planned_kernel &kernel : plan.whole.find(entry)->kernels)
      seconds += kernel.count * device.secondsOf(kernel.flops, double(kernel.bytes));
  return seconds;
}

planning::ChunkSeconds rooflineOf(const StagePlan &plan, const planned_chunk &chunk,
                                  const Device &device) {
  planning::ChunkSeconds seconds;
  const double backward = rooflineOf(plan, chunk.backward, device);
  seconds.forward = rooflineOf(plan, chunk.forward, device);
  seconds.inputGradient = backward;
  seconds.weightGradient = rooflineOf(plan, chunk.weight_gradient, device);
  if (chunk.weight_gradient.empty()) {
    seconds.weightGradient = backward * chunk.weight_gradient_share;
    seconds.inputGradient -= seconds.weightGradient;
  }
  return seconds;
}

/// Of one rank's gradients over the replicas of its stage: its parts to them, or its total.
double halfExchangeOf(double bytes, int stages, int replicas, const Network &network) {
  if (replicas < 2)
    return 0;
  const int replicasPerHost = std::clamp(network.ranksPerHost / stages, 1, replicas);
  const double part = bytes / replicas;
  const double inside = part * (replicasPerHost - 1) / network.within.bytesPerSecond,
               outside = part * (replicas - replicasPerHost) / network.between.bytesPerSecond;
  const double latency =
      replicas > replicasPerHost ? network.between.latency : network.within.latency;
  return std::max(inside, outside) + latency;
}

double agreementOf(int ranks, const Network &network) {
  const Link &link = ranks > network.ranksPerHost ? network.between : network.within;
  return 2 * std::ceil(std::log2(double(ranks))) * link.latency;
}

using BucketExchange = std::function<double(const planned_bucket &)>; // seconds

/// Buckets of a chunk in the functions of another schedule: what no other chunk waits for comes
/// last.
void addBuckets(planning::ChunkSeconds &seconds, const planned_chunk &chunk,
                const BucketExchange &exchange) {
  const double both = seconds.inputGradient + seconds.weightGradient,
               first = both > 0 ? seconds.inputGradient / both : 0;
  const bool isOne = chunk.weight_gradient.empty();
  for (const planned_bucket &bucket : chunk.buckets) {
    if (!isOne && bucket.function != chunk.weight_gradient) {
      seconds.inputBuckets.push_back({bucket.behind, exchange(bucket)});
      continue;
    }
    const double behind = !isOne      ? bucket.behind
                          : first < 1 ? std::max(0.0, (bucket.behind - first) / (1 - first))
                                      : 1;
    seconds.weightBuckets.push_back({std::min(1.0, behind), exchange(bucket)});
  }
}

/// What was measured of a function holds its additions; the waiting is shared out evenly.
BucketExchange measuredExchange(const planned_chunk &plan, const ProfiledChunk &measured) {
  const auto later = double(
      std::count_if(plan.buckets.begin(), plan.buckets.end(), [&](const planned_bucket &bucket) {
        return bucket.function == plan.weight_gradient || plan.weight_gradient.empty();
      }));
  const double first = measured.inputWaiting / std::max(1.0, double(plan.buckets.size()) - later),
               second = measured.weightWaiting / std::max(1.0, later);
  const std::string laterFunction = plan.weight_gradient;
  return [=](const planned_bucket &bucket) {
    return laterFunction.empty() || bucket.function == laterFunction ? second : first;
  };
}

/// A rank updates all, or its part of what the ranks of a host share: by stage, with its first
/// chunk.
void addUpdates(planning::StepCosts &costs, const StagePlan &plan, int stages, int replicas,
                const CostSources &sources) {
  const int shares = sources.shared == sharing::none ? 1 : ranksOnHost(sources, stages * replicas);
  double all = 0;
  if (const Profile *profile = sources.profile) {
    for (const ProfiledChunk &chunk : profile->chunks)
      all += chunk.seconds.update / profile->stages; // the mean of the ranks
    if (profile->shared != sharing::none)
      all *= profile->stages * profile->replicas;
  } else {
    all = rooflineOf(plan, "update", sources.device);
  }
  for (size_t chunk = 0; chunk < costs.chunks.size(); ++chunk)
    costs.chunks[chunk].update = int(chunk) < stages ? all / shares : 0;
}

} // namespace

int ranksOnHost(const CostSources &sources, int ranks) {
  return sources.network ? std::min(ranks, sources.network->ranksPerHost) : ranks;
}

Profile readProfile(const std::string &path, const StagePlan &plan) {
  return ProfileReader(path, plan).run();
}

planning::StepCosts costsOf(const StagePlan &plan, const planning::Schedule &schedule, int replicas,
                            const CostSources &sources) {
  planning::StepCosts costs;
  const int stages = schedule.pipeline.stages;
  for (size_t i = 0; i < plan.chunks().size(); ++i)
    costs.chunks.push_back(sources.profile ? sources.profile->chunks[i].seconds
                                           : rooflineOf(plan, plan.chunks()[i], sources.device));
  addUpdates(costs, plan, stages, replicas, sources);
  if (sources.profile)
    costs.rest = sources.profile->rest;
  const bool shards = plan.stages().shared == sharing::gradients;
  if (!sources.network) { // the ranks meet, and each adds its part
    const Profile &profile = *sources.profile;
    for (int stage = 0; stage < stages; ++stage) {
      double exchange = 0;
      for (size_t chunk = size_t(stage); chunk < profile.chunks.size(); chunk += size_t(stages))
        exchange += profile.chunks[chunk].exchange;
      costs.norm = std::max(costs.norm, exchange + profile.meeting);
    }
    costs.transfer = [&profile](int boundary, bool ofGradients, int, int) {
      auto found = profile.messages.find({boundary, ofGradients});
      return found == profile.messages.end()
                 ? planning::StepCosts::Transfer{}
                 : planning::StepCosts::Transfer{0, 0, found->second.first, found->second.second};
    };
    for (size_t i = 0; i < plan.chunks().size(); ++i)
      addBuckets(costs.chunks[i], plan.chunks()[i],
                 measuredExchange(plan.chunks()[i], profile.chunks[i]));
    return costs;
  }
  const Network &network = *sources.network;
  auto half = [&](double bytes) { return halfExchangeOf(bytes, stages, replicas, network); };
  for (size_t i = 0; i < plan.chunks().size(); ++i) // none, but of sharded gradients
    addBuckets(costs.chunks[i], plan.chunks()[i],
               [&](const planned_bucket &bucket) { return half(double(bucket.bytes)); });
  // Sharded gradients are added by then. Hosts have a copy of the parameters each, so totals go to
  // the others.
  const bool isOneHost = stages * replicas <= network.ranksPerHost;
  for (size_t i = 0; i < plan.chunks().size(); ++i)
    costs.chunks[i].reduce =
        (shards ? (isOneHost ? 0 : 1) : 2) * half(double(plan.chunks()[i].gradient_bytes));
  if (stages * replicas > 1)
    costs.norm = agreementOf(stages * replicas, network);
  costs.transfer = [&plan, &network](int boundary, bool ofGradients, int from, int to) {
    const Link &link = network.linkOf(from, to);
    const planned_boundary &crossed = plan.stages().boundaries[size_t(boundary)];
    double bytes = 0;
    for (const crossing_bytes &tensor : ofGradients ? crossed.gradients : crossed.activations)
      bytes += double(tensor.bytes);
    return planning::StepCosts::Transfer{link.latency, bytes / link.bytesPerSecond, 0, 0};
  };
  return costs;
}

planning::StepCosts withoutCommunication(planning::StepCosts costs) {
  for (planning::ChunkSeconds &chunk : costs.chunks) {
    chunk.reduce = 0;
    chunk.inputBuckets.clear();
    chunk.weightBuckets.clear();
  }
  costs.norm = 0;
  costs.transfer = nullptr;
  return costs;
}

} // namespace trainc::simulate
