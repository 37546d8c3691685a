// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/ranks/rank_files.h"

#include "runtime/cpu/ranks/shared_wait.h"
#include "runtime/process/signs_of_life.h"
#include "runtime/ranks/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace trainc {
namespace {

constexpr int64_t gather_bytes = 1 << 14; // of a rank's file, after its first page

} // namespace

struct rank_files::meeting_point {
  std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;

  // Until `count` have come.
  void meet(int count) {
    const uint32_t now = generation.load();
    if (arrived.fetch_add(1) + 1 == static_cast<uint32_t>(count)) {
      arrived.store(0);
      change(generation);
      return;
    }
    wait_for_change(generation, now);
  }
};

// First page of each rank's memory file. All ranks meet in rank 0's, the replicas of a stage in
// that of the first of them.
struct rank_files::control_page {
  uint64_t not_ours; // shared_memory.h
  alignas(64) meeting_point all;
  alignas(64) meeting_point replicas;
  alignas(64) std::atomic<uint32_t> completed;
};

std::unique_ptr<rank_files> rank_files::open(communicator &ranks, const char *name,
                                             const stage_layout &layout,
                                             const std::vector<int64_t> &bytes, bool sparse) {
  static_assert(sizeof(control_page) <= page_bytes);
  if (ranks.ranks_on_host() != ranks.size())
    return nullptr;
  std::vector<int64_t> whole;
  whole.reserve(bytes.size());
  for (const int64_t own : bytes)
    whole.push_back(page_bytes + gather_bytes + round_up(std::max<int64_t>(own, 1), page_bytes));
  auto files = share_with_host(name, whole[static_cast<size_t>(ranks.rank())], sparse);
  if (files.empty())
    return nullptr;
  return std::unique_ptr<rank_files>(
      new rank_files(ranks, layout, std::move(files), std::move(whole)));
}

rank_files::rank_files(communicator &ranks, const stage_layout &layout, std::vector<char *> files,
                       std::vector<int64_t> bytes)
    : ranks_(ranks), layout_(layout), files_(std::move(files)), bytes_(std::move(bytes)) {
  ranks_.use(this);
}

rank_files::~rank_files() {
  ranks_.use(nullptr);
  for (size_t rank = 0; rank < files_.size(); ++rank)
    munmap(files_[rank], static_cast<size_t>(bytes_[rank]));
}

rank_files::control_page &rank_files::control_of(int rank) {
  return *reinterpret_cast<control_page *>(files_[static_cast<size_t>(rank)]);
}

char *rank_files::memory(int rank) const {
  return files_[static_cast<size_t>(rank)] + page_bytes + gather_bytes;
}

std::atomic<uint32_t> &rank_files::completed(int rank) { return control_of(rank).completed; }

void rank_files::meet_replicas() {
  const waiting_for_ranks wait;
  control_of(layout_.rank_of(0, layout_.stage)).replicas.meet(layout_.replicas);
}

void rank_files::barrier() { control_of(0).all.meet(ranks_.size()); }

// In pieces that have room: what ranks say may be of any size.
void rank_files::gather(const void *mine, int64_t count, void *all) {
  for (int64_t done = 0; done < count; done += gather_bytes) {
    const auto length = static_cast<size_t>(std::min(count - done, gather_bytes));
    memcpy(files_[static_cast<size_t>(ranks_.rank())] + page_bytes,
           static_cast<const char *>(mine) + done, length);
    barrier();
    for (int other = 0; other < ranks_.size(); ++other)
      memcpy(static_cast<char *>(all) + other * count + done,
             files_[static_cast<size_t>(other)] + page_bytes, length);
    barrier();
  }
}

} // namespace trainc
