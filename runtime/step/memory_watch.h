// SPDX-License-Identifier: Apache-2.0
//
// Follows the memory of a training step's phases on every rank, for `train --memory-every`.
#pragma once

#include "runtime/observe/memory_phases.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/step/gradient_step.h"
#include "runtime/step/memory_rows.h"

#include <vector>

namespace trainc {

class memory_watch final : public step_clock, public action_observer {
public:
  // Throws `failure` (exit_data) where there is no plan beside the trainer. Takes all memory.
  memory_watch(const run &run, int64_t micro_batches);

  void begin_step() { phases_.begin_step(); }
  // Collective, after the step. Calls row(rank, phase, bytes by name) on the first rank for all of
  // them, in their order.
  template <typename Row> void gather(const Row &row) {
    const memory_matrix &mine = phases_.matrix();
    run_.ranks.gather(&mine, sizeof mine, all_.data());
    if (!run_.is_first())
      return;
    for (int rank = 0; rank < run_.ranks.size(); ++rank)
      for (int i = 0; i < memory_phase_count; ++i)
        if (const phase_memory &of = all_[static_cast<size_t>(rank)][static_cast<size_t>(i)];
            of.activations >= 0)
          row(rank, static_cast<memory_phase>(i), memory_row(planned_of(rank), of));
  }

  void enter(const char *function) override { phases_.enter(function); }
  void begin(int step) override { phases_.begin(step); }
  void leave() override { phases_.leave(); }
  void begins(const stage_action &action) override { phases_.begins(action); }
  void ends() override {}

private:
  const rank_memory &planned_of(int rank) const {
    return planned_[static_cast<size_t>(stage_layout(run_.prog, rank, run_.ranks.size()).stage)];
  }

  const run &run_;
  std::vector<rank_memory> planned_; // by stage
  memory_phases phases_;
  std::vector<memory_matrix> all_; // by rank
};

} // namespace trainc
