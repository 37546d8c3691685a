// SPDX-License-Identifier: Apache-2.0
//
// How many threads a rank uses and on which cores they may run.
#pragma once

#include "runtime/ranks/communicator.h"

#include <sched.h>
#include <vector>

namespace trainc {

// Of ranks of one host, by the cores on which each may run: how many are the first one's, where
// each is divided among those that may use it. At least one.
int share_of_first(const std::vector<cpu_set_t> &ranks);

// The same of this rank: launchers may bind ranks to cores of their own, or to none. No more than
// the quota of a container, divided by its ranks. Collective.
int share_of_cores(communicator &ranks);

// Must run before any thread starts, since threads inherit it. Open MPI binds two ranks to one core
// each unasked, which may be fewer than our threads need: then allows the launcher's own cores
// again. `requested` is --threads, 0 when it was not given. Throws like choose_threads.
void widen_affinity(int requested);

// Sets and returns the number of OpenMP threads: `requested`, else
// OMP_NUM_THREADS, else `cores`. Throws `failure`
// (exit_usage) where `requested` is more than OMP_THREAD_LIMIT allows; the others obey it. So it
// does where OMP_NUM_THREADS counts and is not a number of threads.
int choose_threads(int requested, int cores);

} // namespace trainc
