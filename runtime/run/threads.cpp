// SPDX-License-Identifier: Apache-2.0
//
// Threads per rank and their cores.
#include "runtime/run/threads.h"

#include "runtime/failure.h"
#include "runtime/options/option_values.h"
#include "runtime/options/trainer_table.h"
#include "runtime/process/processor_quota.h"
#include "runtime/ranks/launcher.h"

#include <algorithm>
#include <cstdlib>
#include <omp.h>
#include <unistd.h>

namespace trainc {
namespace {

// 0: it is not set. A list says how many for each level of nesting, of which we have one.
int threads_of_environment() {
  const char *variable = getenv("OMP_NUM_THREADS");
  std::string text = variable ? variable : "";
  text = text.substr(0, text.find(','));
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos)
    return 0;
  text = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  int64_t threads = 0;
  if (std::string problem = read_value(text, {1, most_threads}, threads); !problem.empty())
    throw failure(exit_usage, "OMP_NUM_THREADS in the environment: " + problem +
                                  "\n  try: a number of threads there, or --threads N");
  return static_cast<int>(threads);
}

cpu_set_t cores_of(pid_t process) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(process, sizeof cores, &cores);
  return cores;
}

} // namespace

void widen_affinity(int requested) {
  const launch launch = find_launch();
  if (!launch.is_open_mpi)
    return;
  const cpu_set_t own = cores_of(0), launchers = cores_of(getppid()); // none if it is gone
  cpu_set_t allowed;
  CPU_OR(&allowed, &launchers, &own);
  int wanted = requested ? requested : threads_of_environment();
  if (!wanted)
    wanted = std::max(CPU_COUNT(&allowed) / std::max(launch.ranks_on_host, 1), 1);
  if (CPU_COUNT(&own) < std::min(wanted, CPU_COUNT(&allowed)))
    sched_setaffinity(0, sizeof allowed, &allowed); // on failure we go on, only slower
}

int share_of_first(const std::vector<cpu_set_t> &ranks) {
  double share = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &ranks.front()))
      share += 1.0 / static_cast<double>(
                         std::count_if(ranks.begin(), ranks.end(), [&](const cpu_set_t &cores) {
                           return CPU_ISSET(core, &cores);
                         }));
  return std::max(static_cast<int>(share + 1e-6), 1);
}

int share_of_cores(communicator &ranks) {
  struct report {
    int host;
    cpu_set_t cores;
  };
  const report own = {ranks.first_on_host(), cores_of(0)};
  std::vector<report> all(static_cast<size_t>(ranks.size()));
  ranks.gather(&own, sizeof own, all.data());
  std::vector<cpu_set_t> on_host = {own.cores};
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].host == own.host && rank != static_cast<size_t>(ranks.rank()))
      on_host.push_back(all[rank].cores);
  const int cores = share_of_first(on_host);
  const double quota = processor_quota() / static_cast<double>(on_host.size());
  return quota > 0 ? std::clamp(static_cast<int>(quota), 1, cores) : cores;
}

// oneDNN computes other numbers where a team has fewer threads than it was promised.
int choose_threads(int requested, int cores) {
  const int most = omp_get_thread_limit();
  if (requested > most)
    throw failure(exit_usage, format_text("option --threads: OMP_THREAD_LIMIT allows %d, not %d\n"
                                          "  try: another OMP_THREAD_LIMIT in the environment",
                                          most, requested));
  int threads = requested ? requested : threads_of_environment();
  threads = std::min(threads ? threads : cores, most);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  return threads;
}

} // namespace trainc
