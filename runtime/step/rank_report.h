// SPDX-License-Identifier: Apache-2.0
//
// What ranks tell each other of their batches: how it went, what they are asked for, and values.
#pragma once

#include "runtime/process/signals.h"
#include "runtime/run/run.h"
#include "runtime/step/micro_batch.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace trainc {

struct rank_report {
  int status = exit_success; // an exit_code: what stopped this rank
  int requests = no_request; // signal_request bits
};

// A report of each rank and as many means of each. Allocates nothing after the constructor.
class rank_reports {
public:
  rank_reports(run &run, size_t means)
      : run_(run), means_(means), bytes_(sizeof(rank_report) + means * sizeof(weighed_mean)),
        mine_(bytes_), all_(bytes_ * static_cast<size_t>(run.ranks.size())) {}

  // What this rank says next.
  rank_report &mine() { return report_at(mine_.data()); }
  std::span<weighed_mean> my_means() { return means_at(mine_.data()); }
  // Says nothing: a report that all is well, and means of nothing.
  void clear() { std::fill(mine_.begin(), mine_.end(), '\0'); }

  // Collective. Throws on every rank where any has a status; the lowest such rank has the message.
  void exchange(const std::string &my_message) {
    run_.ranks.gather(mine_.data(), static_cast<int64_t>(bytes_), all_.data());
    for (int rank = 0; rank < run_.ranks.size(); ++rank)
      if (int status = report_at(place_of(rank)).status)
        throw failure(static_cast<exit_code>(status), rank == run_.ranks.rank() ? my_message : "",
                      /*everywhere=*/true);
  }

  // What the last exchange brought: of any rank, and of one.
  int requests() {
    int any = no_request;
    for (int rank = 0; rank < run_.ranks.size(); ++rank)
      any |= report_at(place_of(rank)).requests;
    return any;
  }
  std::span<const weighed_mean> means_of(int rank) { return means_at(place_of(rank)); }

private:
  static_assert(sizeof(rank_report) % alignof(weighed_mean) == 0);
  char *place_of(int rank) { return all_.data() + bytes_ * static_cast<size_t>(rank); }
  static rank_report &report_at(char *place) { return *reinterpret_cast<rank_report *>(place); }
  std::span<weighed_mean> means_at(char *place) const {
    return {reinterpret_cast<weighed_mean *>(place + sizeof(rank_report)), means_};
  }

  run &run_;
  size_t means_, bytes_;         // of one rank
  std::vector<char> mine_, all_; // zeros: as after `clear`
};

} // namespace trainc
