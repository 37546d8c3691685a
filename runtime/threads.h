// SPDX-License-Identifier: Apache-2.0
//
// How many threads a rank uses and on which cores they may run.
#pragma once

namespace trainc {

// Must run before any thread starts, since threads inherit it. A launcher may have bound us to
// fewer cores than our threads need (Open MPI binds two ranks to one core each): then allows the
// launcher's own cores again. `requested` is --threads, 0 when it was not given.
void widen_affinity(int requested);

// Sets and returns the number of OpenMP threads: `requested`, else
// OMP_NUM_THREADS, else the usable cores divided among the ranks of this host. Throws `failure`
// (exit_usage) where `requested` is more than OMP_THREAD_LIMIT allows; the others obey it.
int choose_threads(int requested, int ranks_on_host);

} // namespace trainc
