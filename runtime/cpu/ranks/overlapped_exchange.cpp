// SPDX-License-Identifier: Apache-2.0
//
// Ranks count in shared memory how many buckets they have made, of all steps: who adds a bucket
// waits until each rank has it. No two ranks write one element, and nobody else reads or writes
// what is whole, so the ranks meet once alone: where all have added their parts of all buckets.
#include "runtime/cpu/ranks/overlapped_exchange.h"

#include "runtime/cpu/ranks/shared_wait.h"
#include "runtime/files/data_types.h"
#include "runtime/process/clock.h"
#include "runtime/ranks/gradient_parts.h"

#include <algorithm>
#include <omp.h>
#include <pthread.h>

namespace trainc {
namespace {

constexpr int64_t slice_bytes = 1 << 20;

// Of the thread: one core, a name that `top -H` shows, and OpenMP's memory for it.
void settle(void *) {
  pthread_setname_np(pthread_self(), "exchange");
  omp_set_num_threads(1);
#pragma omp parallel
  {}
}

} // namespace

overlapped_exchange::overlapped_exchange(rank_files &files, const stage_layout &layout,
                                         const bucket_list &buckets, step_sum sum)
    : files_(files), layout_(layout), bucket_count_(std::ssize(buckets)), sum_(std::move(sum)) {
  const int64_t longest = slice_bytes / bytes_of(sum_.type);
  int number = 0;
  for (const gradient_bucket &bucket : buckets) {
    for (const gradient_piece &piece : bucket) {
      const int64_t first = piece.elements.begin;
      const gradient_parts parts(piece.elements.end - first, layout_.replicas);
      const int64_t end = first + parts.end(layout_.replica);
      for (int64_t begin = first + parts.begin(layout_.replica); begin < end; begin += longest)
        slices_.push_back({number, begin, std::min(begin + longest, end)});
    }
    ++number;
  }
  worker_.start(settle, nullptr);
  worker_.wait();
}

void overlapped_exchange::begin() {
  next_ = 0;
  backward_ended_ = 0;
  of_thread_ = {};
  worker_.start([](void *self) { static_cast<overlapped_exchange *>(self)->beside(); }, this);
}

void overlapped_exchange::complete(int) { change(files_.completed(layout_.replica)); }

void overlapped_exchange::beside() { add_slices(of_thread_); }

void overlapped_exchange::await(int bucket) const {
  const uint32_t enough = completed_before_ + static_cast<uint32_t>(bucket) + 1;
  for (int rank = 0; rank < layout_.replicas; ++rank) {
    const std::atomic<uint32_t> &completed = files_.completed(rank);
    for (uint32_t seen = completed.load(); static_cast<int32_t>(seen - enough) < 0;
         seen = completed.load())
      wait_for_change(completed, seen);
  }
}

void overlapped_exchange::add_slices(share &own) {
  for (size_t i = next_++; i < slices_.size(); i = next_++) {
    await(slices_[i].bucket);
    const double began = seconds_now();
    sum_in_order(sum_.type, sum_.summands, sum_.targets.data(),
                 static_cast<int>(sum_.targets.size()), slices_[i].begin, slices_[i].end);
    const double ended = seconds_now(), backward_ended = backward_ended_;
    if (own.began == 0)
      own.began = began;
    own.adding += ended - began;
    own.beside +=
        std::max(0.0, (backward_ended > 0 ? std::min(ended, backward_ended) : ended) - began);
  }
}

exchange_times overlapped_exchange::finish() {
  const double backward_ended = seconds_now();
  backward_ended_ = backward_ended;
  share own;
  add_slices(own);
  worker_.wait();
  files_.barrier();
  completed_before_ += static_cast<uint32_t>(bucket_count_);
  exchange_times times;
  times.end = seconds_now();
  times.begin = times.end;
  for (const share &each : {own, of_thread_}) {
    if (each.began > 0)
      times.begin = std::min(times.begin, each.began);
    times.adding += each.adding;
    times.beside += each.beside;
  }
  times.exposed = times.end - backward_ended;
  return times;
}

} // namespace trainc
