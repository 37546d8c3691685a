// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/bucket_exchange.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"

#include <utility>

namespace trainc {
namespace {

void queue_after(cudaStream_t earlier, cudaStream_t later, const event &between) {
  check_cuda(cudaEventRecord(between, earlier), "order of an exchange");
  check_cuda(cudaStreamWaitEvent(later, between, 0), "order of an exchange");
}

} // namespace

// Its blocks come before those of kernels that wait for a place: ranks wait for each other in them.
bucket_exchange::bucket_exchange(graphs &recorded, bool memory_is_lent,
                                 std::function<void(int bucket)> queue)
    : recorded_(recorded), memory_is_lent_(memory_is_lent), queue_(std::move(queue)) {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "making a stream");
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
             "making a stream");
}

bucket_exchange::~bucket_exchange() { cudaStreamDestroy(stream_); }

void bucket_exchange::complete(int bucket) {
  recorded_.call_between([this, bucket] { begin(bucket); });
}

void bucket_exchange::begin(int bucket) {
  if (memory_is_lent_)
    finish(); // the buckets before
  queue_after(compute_stream(), stream_, whole_);
  const stream_turn turn(stream_);
  queue_(bucket);
}

bool bucket_exchange::is_busy() const { return cudaStreamQuery(stream_) == cudaErrorNotReady; }

void bucket_exchange::finish() { queue_after(stream_, compute_stream(), exchanged_); }

} // namespace trainc
