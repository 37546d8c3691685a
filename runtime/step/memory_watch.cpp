// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/memory_watch.h"

#include "runtime/plan/read_plan.h"
#include "runtime/process/host_memory.h"

namespace trainc {

memory_watch::memory_watch(const run &run, int64_t micro_batches)
    : run_(run), planned_(run.planned_memory(micro_batches)),
      phases_(function_memories(read_plan(run.folder)), run.prog.stages,
              [&run](phase_memory &now) {
                now.resident = resident_bytes();
                if (const device_bytes device = run.target.memory_in_use(); device.used > 0) {
                  now.device_used = device.used;
                  now.device_free = device.free;
                }
              }),
      all_(static_cast<size_t>(run.ranks.size())) {}

} // namespace trainc
