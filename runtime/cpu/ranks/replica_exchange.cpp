// SPDX-License-Identifier: Apache-2.0
//
// A rank's file has two places, taken in turn: who writes a place again has met the others since,
// and they came there when they had read it. So an exchange is one meeting.
#include "runtime/cpu/ranks/replica_exchange.h"

#include "runtime/ranks/shared_memory.h"

#include <cstring>

namespace trainc {

replica_exchange::replica_exchange(communicator &ranks, const stage_layout &layout, int64_t bytes,
                                   communication_kind kind)
    : ranks_(ranks), layout_(layout), place_bytes_(round_up(bytes, line_bytes)),
      places_(static_cast<size_t>(layout.replicas)) {
  if (kind != communication_kind::messages)
    files_ =
        rank_files::open(ranks, "trainc-statistics", layout,
                         std::vector<int64_t>(static_cast<size_t>(ranks.size()), 2 * place_bytes_),
                         /*sparse=*/false);
  ranks.together([&] {
    if (!files_ && layout.stages > 1) // messages would be to the ranks of all stages
      throw failure(
          exit_machine,
          "the replicas of a stage exchange statistics of batch norms over all ranks in "
          "shared memory\n  try: all ranks on one host, without --communication messages");
    if (!files_)
      received_.resize(static_cast<size_t>(layout.replicas * place_bytes_));
  });
}

const char *const *replica_exchange::gather(const void *mine, int64_t bytes) {
  if (!files_) {
    ranks_.gather(mine, bytes, received_.data());
    for (int replica = 0; replica < layout_.replicas; ++replica)
      places_[static_cast<size_t>(replica)] = received_.data() + replica * bytes;
    return places_.data();
  }
  const int64_t place = turn_ * place_bytes_;
  turn_ = 1 - turn_;
  memcpy(files_->memory(ranks_.rank()) + place, mine, static_cast<size_t>(bytes));
  files_->meet_replicas();
  for (int replica = 0; replica < layout_.replicas; ++replica)
    places_[static_cast<size_t>(replica)] =
        files_->memory(layout_.rank_of(replica, layout_.stage)) + place;
  return places_.data();
}

} // namespace trainc
