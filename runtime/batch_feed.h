// SPDX-License-Identifier: Apache-2.0
//
// Batches on their way from the loader to the device, one of them ahead where the
// device can work meanwhile.
#pragma once

#include "runtime/data_types.h"
#include "runtime/device.h"
#include "runtime/loader.h"

#include <cstring>

namespace trainc {

class batch_feed {
public:
  batch_feed(device &target, loader &data) : target_(target), data_(data) {}

  // Hands a batch to the device. Throws what the loader throws; the device then
  // keeps the batch it had.
  void submit(data_part part, int64_t batch) {
    if (!(ready_ && part == part_ && batch == batch_))
      load(part, batch);
    ready_ = false;
    target_.submit_batch();
  }

  // Another feed has used the device since: nothing of this one is ahead.
  void forget() { ready_ = false; }

  // In place of a batch that could not be read: zeros, which every input may be.
  void submit_nothing(const program &program) {
    ready_ = false;
    for (int64_t i = 0; i < program.input_count; ++i) {
      const tensor_place &input = program.inputs[i].tensor;
      memset(target_.batch_place(input), 0,
             static_cast<size_t>(element_count(input) * bytes_of(input.type)));
    }
    target_.send_batch();
    target_.submit_batch();
  }

  // To be called while queued work runs: loads the batch that `submit` will be asked
  // for. An error is left to `submit`, which meets it again.
  void load_ahead(data_part part, int64_t batch) {
    if (!target_.overlaps_batches())
      return;
    try {
      load(part, batch);
    } catch (const failure &) {
      ready_ = false;
    }
  }

private:
  void load(data_part part, int64_t batch) {
    ready_ = false;
    data_.load(part, batch,
               [this](const tensor_place &input) { return target_.batch_place(input); });
    target_.send_batch();
    ready_ = true;
    part_ = part;
    batch_ = batch;
  }

  device &target_;
  loader &data_;
  bool ready_ = false; // sent to the device, not yet submitted
  data_part part_ = data_part::all;
  int64_t batch_ = 0;
};

} // namespace trainc
