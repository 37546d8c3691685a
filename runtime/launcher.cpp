// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace trainc {
namespace {

struct launcher_variables {
  const char *size, *rank;
};

// The first that is there speaks: mpirun starts its ranks through srun where that is, whose tasks
// are then mpirun's helpers.
constexpr launcher_variables variables[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, // Open MPI
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},   // MVAPICH
    {"PMI_SIZE", "PMI_RANK"},                         // MPICH and Intel MPI; srun --mpi=pmi2
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},         // srun
};

int number(const char *variable) {
  const char *text = getenv(variable);
  return text ? atoi(text) : 0;
}

} // namespace

launch find_launch() {
  launch found;
  // Of these no size comes along.
  for (const char *variable : {"PMIX_RANK", "PMI_RANK", "MPI_LOCALNRANKS"})
    found.started |= getenv(variable) != nullptr;
  found.rank = number(getenv("PMIX_RANK") ? "PMIX_RANK" : "PMI_RANK");
  for (const launcher_variables &row : variables) {
    // A shell on one of Slurm's machines is a step of one task; nothing there was launched as a
    // rank.
    bool is_shell = strcmp(row.rank, "SLURM_PROCID") == 0 && number(row.size) <= 1;
    if (!getenv(row.size) || is_shell)
      continue;
    found = {true, number(row.rank), number(row.size), row.size};
    break;
  }
  return found;
}

} // namespace trainc
