// SPDX-License-Identifier: Apache-2.0
//
// What the environment says of the launcher that started this process, which is all that is known
// before MPI is up.
#pragma once

#include <string>

namespace trainc {

struct launch {
  bool started = false;  // by a launcher of ranks
  int rank = 0;          // 0 too where it does not say
  int size = 0;          // 0: it does not say
  int ranks_on_host = 0; // of this one; 0: it does not say
  bool is_open_mpi =
      false; // mpirun binds a rank to a core unasked, and gives it a terminal of its own
  const char *source = ""; // the variable that says so
  std::string problem;     // what is wrong with the variables; empty: nothing
};

launch find_launch();

// The process of the launcher that this one's output goes through, on this host.
int launcher_process();

} // namespace trainc
