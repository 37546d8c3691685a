// SPDX-License-Identifier: Apache-2.0
//
// Keeps oneDNN on the calling thread.
#pragma once

#include <omp.h>

namespace trainc {

// oneDNN starts threads of its own where it finds itself outside a parallel
// region, and then the order of its sums may depend on their number. What it decides
// for a primitive when that is made depends on it too.
class one_thread {
public:
  explicit one_thread(bool wanted = true) : before_(wanted ? omp_get_max_threads() : 0) {
    if (before_ > 1)
      omp_set_num_threads(1);
  }
  ~one_thread() {
    if (before_ > 1)
      omp_set_num_threads(before_);
  }
  one_thread(const one_thread &) = delete;
  one_thread &operator=(const one_thread &) = delete;

private:
  int before_;
};

} // namespace trainc
