// SPDX-License-Identifier: Apache-2.0
//
// Threads per rank and their cores.
#include "runtime/threads.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cstdlib>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

namespace trainc {
namespace {

int number_in_environment(const char *variable) {
  const char *text = getenv(variable);
  return text ? std::max(atoi(text), 0) : 0;
}

// The cores of the launcher, of which it gave us some; ours if it is gone.
cpu_set_t allowed_cores() {
  cpu_set_t own, launcher;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  if (!getenv("OMPI_COMM_WORLD_SIZE") || sched_getaffinity(getppid(), sizeof launcher, &launcher))
    return own;
  CPU_OR(&launcher, &launcher, &own);
  return launcher;
}

} // namespace

void widen_affinity(int requested) {
  if (!getenv("OMPI_COMM_WORLD_SIZE"))
    return;
  cpu_set_t own, allowed = allowed_cores();
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof own, &own) != 0)
    return;
  int ranks = std::max(number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE"), 1);
  int wanted = requested ? requested : number_in_environment("OMP_NUM_THREADS");
  if (!wanted)
    wanted = std::max(CPU_COUNT(&allowed) / ranks, 1);
  if (CPU_COUNT(&own) < std::min(wanted, CPU_COUNT(&allowed)))
    sched_setaffinity(0, sizeof allowed, &allowed); // on failure we go on, only slower
}

// oneDNN computes other numbers where a team has fewer threads than it was promised.
int choose_threads(int requested, int ranks_on_host) {
  const int most = omp_get_thread_limit();
  if (requested > most)
    throw failure(exit_usage, format_text("option --threads: OMP_THREAD_LIMIT allows %d, not %d\n"
                                          "  try: another OMP_THREAD_LIMIT in the environment",
                                          most, requested));
  int threads = requested ? requested : number_in_environment("OMP_NUM_THREADS");
  if (!threads) {
    cpu_set_t allowed = allowed_cores();
    threads = std::max(CPU_COUNT(&allowed) / std::max(ranks_on_host, 1), 1);
  }
  threads = std::min(threads, most);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  return threads;
}

} // namespace trainc
