// SPDX-License-Identifier: Apache-2.0
//
// What ranks tell each other of their batches: the same count of numbers each, a status first.
#pragma once

#include "runtime/run.h"

#include <string>
#include <vector>

namespace trainc {

// Throws on every rank where any has a status, an exit code; the lowest such rank has the message.
// `all` holds `stride` numbers of each rank.
inline void throw_if_any(const run &run, const std::vector<double> &all, size_t stride,
                         const std::string &own_message) {
  for (int rank = 0; rank < run.ranks.size(); ++rank)
    if (auto status = static_cast<int>(all[static_cast<size_t>(rank) * stride]))
      throw failure(static_cast<exit_code>(status), rank == run.ranks.rank() ? own_message : "",
                    /*everywhere=*/true);
}

// A mean's part of a sum. Of a micro-batch without a label that counts it is no number, and no
// part.
inline double weighed(double mean, double weight) { return weight > 0 ? mean * weight : 0; }

} // namespace trainc
