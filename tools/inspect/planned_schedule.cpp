// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/planned_schedule.h"

#include "tools/simulate/step_costs.h"

namespace trainc::inspect {

namespace {

std::string layoutText(const simulate::StagePlan &plan) {
  const planning::Pipeline &pipeline = plan.schedule.pipeline;
  return std::string(planning::nameOf(plan.schedule.kind)) + ", " +
         std::to_string(pipeline.stages) + " stages, " + std::to_string(pipeline.microBatches) +
         " micro-batches; ";
}

} // namespace

PlannedSchedule predictedSchedule(const simulate::StagePlan &plan) {
  return {planning::predictedTimes(plan.stages(), plan.schedule),
          layoutText(plan) + "as predicted, if messages, exchanges and the update took no time"};
}

PlannedSchedule profiledSchedule(const simulate::StagePlan &plan, const std::string &path) {
  const simulate::Profile profile = simulate::readProfile(path, plan);
  simulate::CostSources sources;
  sources.profile = &profile;
  sources.shared = profile.shared;
  return {planning::simulateStep(plan.schedule, profile.replicas,
                                 costsOf(plan, plan.schedule, profile.replicas, sources)),
          layoutText(plan) + "as profiled", simulate::TimeAxis::seconds};
}

} // namespace trainc::inspect
