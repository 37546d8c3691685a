// SPDX-License-Identifier: Apache-2.0
//
// What the ranks that run one function at the same time, each on its batch, tell each other in the
// middle of it: batch norms over all ranks. All come to every exchange, in the order of the steps.
#pragma once

#include <cstdint>

namespace trainc {

class rank_exchange {
public:
  virtual ~rank_exchange() = default;
  virtual int ranks() const = 0;
  // Waits until all have given their `bytes`, and returns where each rank's are, in the order of
  // ranks. They stay until the next exchange.
  virtual const char *const *gather(const void *mine, int64_t bytes) = 0;
};

} // namespace trainc
