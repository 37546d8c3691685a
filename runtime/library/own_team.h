// SPDX-License-Identifier: Apache-2.0
//
// The threads of an OpenMP region, for as long as a call takes: what the caller's own regions have
// comes back.
#pragma once

#include <omp.h>

namespace trainc {

class own_team {
public:
  explicit own_team(int threads) : threads_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
    omp_set_dynamic(0); // oneDNN computes other numbers with fewer threads than it was promised
    if (threads > 0)
      omp_set_num_threads(threads);
  }
  ~own_team() {
    omp_set_num_threads(threads_);
    omp_set_dynamic(dynamic_);
  }
  own_team(const own_team &) = delete;
  own_team &operator=(const own_team &) = delete;

  static int current_threads() { return omp_get_max_threads(); }

private:
  int threads_, dynamic_;
};

} // namespace trainc
