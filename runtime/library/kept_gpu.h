// SPDX-License-Identifier: Apache-2.0
//
// The GPU that is current for the calling thread, for as long as a call takes: it comes back.
#pragma once

#include "runtime/device.h"

namespace trainc {

class kept_gpu {
public:
  kept_gpu() : number_(current_gpu()) {}
  ~kept_gpu() { make_current(number_); }
  kept_gpu(const kept_gpu &) = delete;
  kept_gpu &operator=(const kept_gpu &) = delete;

private:
  int number_;
};

} // namespace trainc
