// SPDX-License-Identifier: Apache-2.0
//
// Batches on their way from the loader to the device, one of them ahead: where the
// device works by itself, this thread loads and sends it meanwhile; where this thread
// computes, another one loads it into memory of its own. Either way it is the loader
// that writes the batch, so that its bits are the same.
#pragma once

#include "runtime/data/loader.h"
#include "runtime/device.h"
#include "runtime/process/background.h"
#include "runtime/step/step_trace.h"

#include <optional>
#include <vector>

namespace trainc {

class batch_feed {
public:
  // Allocates; nothing does afterwards.
  batch_feed(const program &program, device &target, loader &data);
  batch_feed(const batch_feed &) = delete;
  batch_feed &operator=(const batch_feed &) = delete;

  // Bytes of the host's memory for one feed of the program.
  static int64_t bytes(const program &program, const device &target);

  // Hands a batch to the device; `next`, unless it is negative, is the one that will be asked for
  // then. Throws what the loader throws; the device then keeps the batch it had.
  void submit(data_part part, int64_t batch, int64_t next);

  // Another feed has used the device since: nothing of this one is ahead there.
  void forget() { ready_ = false; }

  // In place of a batch that could not be read: zeros, which every input may be.
  void submit_nothing();

  // To be called while queued work runs: sends the batch that `submit` will be asked
  // for. An error is left to `submit`, which meets it again.
  void load_ahead(data_part part, int64_t batch);

  // Unless it is null, told when each batch that is submitted was read.
  void record(step_trace *trace) { trace_ = trace; }

  // For how long `submit` has kept its callers from computing.
  double seconds_of_data() const { return seconds_of_data_; }

private:
  // A batch in the host's memory, written by the thread.
  struct prefetched {
    data_part part = data_part::all;
    int64_t batch = -1; // none
    bool complete = false;
    double began = 0, ended = 0; // to be read
    std::vector<char> memory;
    std::vector<int64_t> offsets; // of each input
  };

  void load(data_part part, int64_t batch);
  void prefetch(data_part part, int64_t batch);
  bool take_prefetched(data_part part, int64_t batch);
  int64_t index_of(const tensor_place &input) const;
  int64_t bytes_read() const; // of a batch

  const program &program_;
  device &target_;
  loader &data_;
  bool ready_ = false; // sent to the device, not yet submitted
  data_part part_ = data_part::all;
  int64_t batch_ = 0;
  double seconds_of_data_ = 0;
  double read_began_ = 0, read_ended_ = 0; // of the batch that was sent
  step_trace *trace_ = nullptr;
  prefetched ahead_;
  std::optional<background_worker> worker_; // last: it uses the others
};

} // namespace trainc
