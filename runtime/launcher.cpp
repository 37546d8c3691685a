// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace trainc {
namespace {

struct launcher_variables {
  const char *size; // null: it does not say how many there are
  const char *rank;
  bool of_shells = false; // shells have them too, as a task that is alone
};

// The first that is there speaks: mpirun starts its ranks through srun where that is, whose tasks
// are then mpirun's helpers.
constexpr launcher_variables variables[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, // Open MPI
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},   // MVAPICH
    {"PMI_SIZE", "PMI_RANK"},                         // MPICH, Intel MPI, PALS; srun --mpi=pmi2
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},     // jsrun
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", true},        // flux run
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", true},   // srun
    {nullptr, "PMIX_RANK"},
    {nullptr, "PMI_RANK"},
    {nullptr, "PALS_RANKID"},     // mpiexec of PALS without its PMI
    {nullptr, "ALPS_APP_PE"},     // aprun
    {nullptr, "MPI_LOCALRANKID"}, // Intel MPI
};

// What a variable holds, 0 where there is none; where it is no number from `least` on, `problem`
// says so.
int number_in(const char *variable, int least, std::string &problem) {
  const char *text = variable ? getenv(variable) : nullptr;
  if (!text)
    return 0;
  int value = 0;
  const char *end = text + strlen(text);
  auto [rest, error] = std::from_chars(text, end, value);
  if (error == std::errc() && rest == end && value >= least)
    return value;
  problem = std::string(variable) + " is '" + text + "', which is no number of a launcher's";
  return 0;
}

} // namespace

launch find_launch() {
  for (const launcher_variables &row : variables) {
    launch found;
    found.source = row.size ? row.size : row.rank;
    if (!getenv(found.source))
      continue;
    found.started = true;
    found.rank = number_in(row.rank, 0, found.problem);
    found.size = number_in(row.size, 1, found.problem);
    if (row.of_shells && found.size == 1 && found.problem.empty())
      continue;
    return found;
  }
  return {};
}

} // namespace trainc
