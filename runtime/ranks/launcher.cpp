// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/launcher.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace trainc {
namespace {

struct launcher_variables {
  const char *size; // null: it does not say how many there are
  const char *rank;
  const char *on_host = nullptr; // how many there are on this host
  bool of_shells = false;        // shells have them too, as a task that is alone
};

// The first that is there speaks: mpirun starts its ranks through srun where that is, whose tasks
// are then mpirun's helpers.
constexpr launcher_variables variables[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}, // Open MPI
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},    // MVAPICH
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"}, // MPICH, Intel MPI, PALS; srun --mpi=pmi2
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_SIZE"}, // jsrun
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", nullptr, true},                       // flux run
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", nullptr, true},                  // srun
    {nullptr, "PMIX_RANK"},
    {nullptr, "PMI_RANK"},
    {nullptr, "PALS_RANKID"},     // mpiexec of PALS without its PMI
    {nullptr, "ALPS_APP_PE"},     // aprun
    {nullptr, "MPI_LOCALRANKID"}, // Intel MPI
};

// Its command and its parent.
struct process_status {
  char name[16] = "";
  int parent = 0;
};

process_status status_of(int process) {
  char path[32], text[128];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0)
    close(file);
  text[length < 0 ? 0 : length] = '\0';
  process_status status;
  sscanf(text, "%*d (%15[^)]) %*c %d", status.name, &status.parent);
  return status;
}

// What a variable holds, 0 where there is none; where it is not a number from `least` on, `problem`
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
  problem = std::string(variable) + " is '" + text + "', which is not a number of a launcher's";
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
    found.ranks_on_host = number_in(row.on_host, 1, found.problem);
    found.is_open_mpi = &row == variables;
    if (row.of_shells && found.size == 1 && found.problem.empty())
      continue;
    return found;
  }
  return {};
}

// MPICH's mpiexec has helpers on each host, through whose pipes the output goes.
int launcher_process() {
  int process = getppid();
  for (process_status status = status_of(process);
       strncmp(status.name, "hydra_", 6) == 0 && status.parent > 1; status = status_of(process))
    process = status.parent;
  return process;
}

} // namespace trainc
