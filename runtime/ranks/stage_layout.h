// SPDX-License-Identifier: Apache-2.0
//
// Which rank runs which stage for which replica: replicas one after the other, each with the stages
// in their order. A step that is not cut has one stage.
#pragma once

#include "runtime/program.h"

namespace trainc {

struct stage_layout {
  int stages = 1, replicas = 1;
  int stage = 0, replica = 0; // of this rank

  stage_layout() = default;
  // The layout of one stage.
  stage_layout(int rank, int ranks) : replicas(ranks), replica(rank) {}
  // `ranks` is a multiple of the program's stages.
  stage_layout(const program &program, int rank, int ranks)
      : stages(program.stages ? program.stages->stages : 1), replicas(ranks / stages),
        stage(rank % stages), replica(rank / stages) {}

  int rank_of(int of_replica, int of_stage) const { return of_replica * stages + of_stage; }
};

} // namespace trainc
