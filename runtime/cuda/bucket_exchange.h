// SPDX-License-Identifier: Apache-2.0
//
// An exchange of gradients that goes on while the backward pass does: as soon as a bucket is whole,
// the ranks exchange it on a stream of its own. The additions and their order are those of an
// exchange after the backward pass, so the bits are too. What is recorded of the backward pass ends
// at each bucket, so that NCCL is called as it is elsewhere: a rank that records and one that does
// not may meet.
#pragma once

#include "runtime/cuda/graphs.h"
#include "runtime/cuda/streams.h"
#include "runtime/gradient_exchange.h"

#include <functional>

namespace trainc {

class bucket_exchange final : public gradient_exchange {
public:
  // `queue` queues the exchange of a bucket. `recorded` may be recording the function that tells of
  // them. With `memory_is_lent` that may use a bucket's memory again when the next one is whole.
  bucket_exchange(graphs &recorded, bool memory_is_lent, std::function<void(int bucket)> queue);
  ~bucket_exchange() override;
  bucket_exchange(const bucket_exchange &) = delete;
  bucket_exchange &operator=(const bucket_exchange &) = delete;

  void complete(int bucket) override;
  // What is queued next finds exchanged what was told of.
  void finish();
  bool is_busy() const;

private:
  void begin(int bucket);

  graphs &recorded_;
  const bool memory_is_lent_;
  const std::function<void(int bucket)> queue_;
  cudaStream_t stream_ = nullptr;
  event whole_, exchanged_;
};

} // namespace trainc
