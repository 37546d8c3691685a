// SPDX-License-Identifier: Apache-2.0
//
// Exchanges in the middle of a step, among the ranks that have the same stage: all of them where a
// step is not cut. Ranks of one host have them in memory that all map, else with messages.
#pragma once

#include "runtime/cpu/ranks/rank_files.h"
#include "runtime/options/options.h"
#include "runtime/rank_exchange.h"

#include <memory>
#include <vector>

namespace trainc {

class replica_exchange final : public rank_exchange {
public:
  // Of at most `bytes` each. Collective; throws `failure`.
  replica_exchange(communicator &ranks, const stage_layout &layout, int64_t bytes,
                   communication_kind kind);

  int ranks() const override { return layout_.replicas; }
  const char *const *gather(const void *mine, int64_t bytes) override;

private:
  communicator &ranks_;
  stage_layout layout_;
  int64_t place_bytes_;
  std::unique_ptr<rank_files> files_; // none: messages
  std::vector<char> received_;        // with messages, of all ranks
  std::vector<const char *> places_;  // of the exchange that was last
  int turn_ = 0;                      // which of a file's two places is next
};

} // namespace trainc
