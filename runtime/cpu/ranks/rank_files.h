// SPDX-License-Identifier: Apache-2.0
//
// A memory file of each rank, all on one host, that the others map: where ranks meet, what they say
// to each other, and after that what they are opened for.
#pragma once

#include "runtime/ranks/communicator.h"
#include "runtime/ranks/stage_layout.h"

#include <atomic>
#include <memory>
#include <vector>

namespace trainc {

class rank_files final : public message_path {
public:
  // Of `bytes` each, a rank's own number of them, after what this class needs. Null where ranks do
  // not see each other's memory, on several hosts or in several containers. While it is there,
  // barriers and gathering go this way. Collective.
  static std::unique_ptr<rank_files> open(communicator &ranks, const char *name,
                                          const stage_layout &layout,
                                          const std::vector<int64_t> &bytes, bool sparse);
  ~rank_files() override;
  rank_files(const rank_files &) = delete;
  rank_files &operator=(const rank_files &) = delete;

  char *memory(int rank) const; // of a rank
  void meet_replicas();         // of this rank's stage
  // How many buckets of gradients a rank has made, of all steps: wait_for_change, change.
  std::atomic<uint32_t> &completed(int rank);

  void barrier() override;
  void gather(const void *mine, int64_t count, void *all) override;

private:
  struct meeting_point;
  struct control_page;
  rank_files(communicator &ranks, const stage_layout &layout, std::vector<char *> files,
             std::vector<int64_t> bytes);
  control_page &control_of(int rank);

  communicator &ranks_;
  stage_layout layout_;
  std::vector<char *> files_;
  std::vector<int64_t> bytes_; // of the files
};

} // namespace trainc
