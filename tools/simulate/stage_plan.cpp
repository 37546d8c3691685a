// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/stage_plan.h"
#include "passes/planning/schedule_proof.h"
#include "runtime/failure.h"
#include "runtime/plan/read_plan.h"

namespace trainc::simulate {

StagePlan stagePlanOf(const std::string &folder, plan whole) {
  auto refuse = [&](const std::string &what) {
    throw failure(exit_data,
                  plan_path(folder) + ": " + what + "\n  try: trainc again, into the same folder");
  };
  StagePlan plan{folder, std::move(whole), {}};
  std::string fault;
  plan.schedule = planning::scheduleOf(plan.stages(), fault);
  if (!fault.empty())
    refuse(fault);
  for (const planned_chunk &chunk : plan.chunks())
    for (const std::string &entry :
         {chunk.forward, chunk.backward, chunk.weight_gradient, std::string("update")})
      if (!entry.empty() && !plan.whole.find(entry))
        refuse("has no entry function '" + entry + "', which its stages name");
  return plan;
}

StagePlan readStagePlan(const std::string &folder) {
  plan whole = read_plan(folder);
  if (!whole.stages)
    throw failure(exit_data, plan_path(folder) + ": has no step\n  try: the output folder of "
                                                 "trainc without --forward-only");
  return stagePlanOf(folder, std::move(whole));
}

planning::Schedule scheduleFor(const StagePlan &plan, int stages, planning::ScheduleKind kind,
                               int microBatches) {
  const int chunks = int(plan.chunks().size());
  if (chunks % stages != 0)
    throw failure(exit_usage, "option --stages: " + plan.folder + " is cut into " +
                                  std::to_string(chunks) + ", which " + std::to_string(stages) +
                                  " stages cannot share\n  try: trainc --stages " +
                                  std::to_string(stages));
  planning::Pipeline pipeline = plan.schedule.pipeline;
  pipeline.stages = stages;
  pipeline.chunksPerStage = chunks / stages;
  pipeline.microBatches = microBatches;
  if (std::string why = planning::unfit(kind, pipeline); !why.empty())
    throw failure(exit_usage, "option --schedule: " + why + "\n  try: --stages " +
                                  std::to_string(chunks) +
                                  ", another --schedule or --micro-batches");
  planning::Schedule schedule = planning::makeSchedule(kind, pipeline);
  for (const std::string &fault : planning::faultsOf(schedule, 1))
    throw failure(exit_internal, "internal error: the schedule cannot run: " + fault);
  return schedule;
}

} // namespace trainc::simulate
