// SPDX-License-Identifier: Apache-2.0
//
// Batches on their way to the device. The host fills one of two pinned buffers
// while the other is copied, on a stream of its own, into a staging area on the
// device; from there the compute stream takes the inputs to their places. So the
// next batch can be written and copied while a step runs.
#pragma once

#include "runtime/cuda/memory.h"
#include "runtime/cuda/streams.h"
#include "runtime/program.h"

#include <vector>

namespace trainc {

class batches {
public:
  explicit batches(const program &program);

  // What lies on the device and, pinned, on the host.
  int64_t device_bytes() const { return bytes_; }
  int64_t host_bytes() const { return slot_count * bytes_; }
  void allocate(char *staging);

  // Where the host writes an input of the next batch. Waits until that memory is free.
  char *place(const tensor_place &input);
  // Sends what was written to the staging area, in place of what was sent before.
  void send(const streams &streams);
  // Work queued on the compute stream from now on uses the batch that was sent last.
  void use(const streams &streams, const arenas &arenas);

private:
  static constexpr int slot_count = 2;
  struct slot {
    pinned_memory memory;
    event sent;
  };

  const program &program_;
  std::vector<int64_t> offsets_; // of each input in a slot
  std::vector<bool> written_;    // in the batch at hand
  bool begun_ = false;           // some of it is written, it is not sent
  int64_t bytes_ = 0;
  slot slots_[slot_count];
  int next_ = 0, last_ = 0; // to be written, and sent last
  char *staging_ = nullptr;
  event taken_; // the compute stream has read the staging area
};

} // namespace trainc
