// SPDX-License-Identifier: Apache-2.0
//
// What the actions of a schedule cost: seconds of the chunks from the roofline of a device or from
// what `trainer profile` has measured; of messages and exchanges from the speeds of a network, or
// measured too.
#pragma once

#include "passes/planning/schedule_simulation.h"
#include "tools/simulate/speeds.h"
#include "tools/simulate/stage_plan.h"

#include <map>
#include <utility>

namespace trainc::simulate {

struct ProfiledChunk {
  planning::ChunkSeconds seconds;
  double exchange = 0; // of gradients over replicas and, of a step in stages, into one arena
  /// Of either function, until the other replicas are at a bucket too.
  double inputWaiting = 0, weightWaiting = 0;
};

/// Means over replicas, without the time in which ranks waited for others.
struct Profile {
  int stages = 1, replicas = 1;
  double seconds = 0; // of a step, waiting included
  std::vector<ProfiledChunk> chunks;
  /// By boundary and whether of gradients: of the sender and of the receiver.
  std::map<std::pair<int, bool>, std::pair<double, double>> messages;
  sharing shared = sharing::none;
  double meeting = 0; // of all ranks, after the exchanges
  double rest = 0;
};

/// The file of `trainer profile -o`. Throws `failure` (exit_data) where it cannot be read, or is
/// not of this plan's program.
Profile readProfile(const std::string &path, const StagePlan &plan);

struct CostSources {
  const Profile *profile = nullptr;
  Device device;                    // where there is no profile
  const Network *network = nullptr; // null: messages and exchanges were measured
  sharing shared = sharing::none;
};

/// Ranks of a host that run this layout.
int ranksOnHost(const CostSources &sources, int ranks);

/// Ranks are numbered replica * stages + stage; `sources` has to outlive what is returned.
planning::StepCosts costsOf(const StagePlan &plan, const planning::Schedule &schedule, int replicas,
                            const CostSources &sources);

/// The same where links take no time.
planning::StepCosts withoutCommunication(planning::StepCosts costs);

} // namespace trainc::simulate
