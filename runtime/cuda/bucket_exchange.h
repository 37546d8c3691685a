// SPDX-License-Identifier: Apache-2.0
//
// An exchange of gradients that begins while the backward pass goes on: as soon as a bucket of the
// last micro-batch's gradients is whole, the ranks exchange it on a stream of its own. The
// additions and their order are those of an exchange after the backward pass, so the bits are too.
// What is recorded of the backward pass ends at each bucket, so that NCCL is called as it is
// elsewhere: a rank that records and one that does not may meet.
#pragma once

#include "runtime/cuda/gradient_sum.h"
#include "runtime/cuda/graphs.h"
#include "runtime/cuda/streams.h"
#include "runtime/gradient_exchange.h"

namespace trainc {

class bucket_exchange final : public gradient_exchange {
public:
  // `recorded` may be recording the function that tells of these buckets.
  bucket_exchange(gradient_sum &sum, const bucket_list &buckets, graphs &recorded);
  ~bucket_exchange() override;
  bucket_exchange(const bucket_exchange &) = delete;
  bucket_exchange &operator=(const bucket_exchange &) = delete;

  void complete(int bucket) override;
  // All buckets are told of. What is queued next has the total.
  void finish();

private:
  void queue(int bucket);

  gradient_sum &sum_;
  const bucket_list buckets_;
  graphs &recorded_;
  cudaStream_t stream_ = nullptr;
  event whole_, exchanged_;
};

} // namespace trainc
