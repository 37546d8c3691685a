// SPDX-License-Identifier: Apache-2.0
//
// Batches, one of them ahead.
#include "runtime/step/batch_feed.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/process/clock.h"

#include <cstring>

namespace trainc {

static int64_t aligned(int64_t bytes) {
  constexpr int64_t alignment = 64; // a cache line
  return (bytes + alignment - 1) / alignment * alignment;
}

batch_feed::batch_feed(const program &program, device &target, loader &data)
    : program_(program), target_(target), data_(data) {
  if (target.overlaps_batches())
    return;
  int64_t total = 0;
  for (const input_place &input : program.inputs) {
    ahead_.offsets.push_back(total);
    total += aligned(byte_count(input.tensor));
  }
  ahead_.memory.resize(static_cast<size_t>(total));
  worker_.emplace();
}

int64_t batch_feed::bytes(const program &program, const device &target) {
  int64_t total = 0;
  for (int64_t i = 0; i < std::ssize(program.inputs) && !target.overlaps_batches(); ++i)
    total += aligned(byte_count(program.inputs[i].tensor));
  return total;
}

void batch_feed::submit(data_part part, int64_t batch, int64_t next) {
  double began = seconds_now();
  if (!(ready_ && part == part_ && batch == batch_) && !take_prefetched(part, batch))
    load(part, batch);
  ready_ = false;
  target_.submit_batch();
  if (const int64_t bytes = trace_ ? bytes_read() : 0; bytes > 0)
    trace_->batch(batch, bytes, read_began_, read_ended_, seconds_now() - began);
  if (next >= 0)
    prefetch(part, next);
  seconds_of_data_ += seconds_now() - began;
}

void batch_feed::submit_nothing() {
  ready_ = false;
  for (const input_place &place : program_.inputs) {
    const tensor_place &input = place.tensor;
    memset(target_.batch_place(input), 0, static_cast<size_t>(byte_count(input)));
  }
  target_.send_batch();
  target_.submit_batch();
}

void batch_feed::load_ahead(data_part part, int64_t batch) {
  if (!target_.overlaps_batches())
    return;
  try {
    load(part, batch);
  } catch (const failure &) {
    ready_ = false;
  }
}

void batch_feed::load(data_part part, int64_t batch) {
  ready_ = false;
  read_began_ = seconds_now();
  data_.load(part, batch, [this](const tensor_place &input) { return target_.batch_place(input); });
  read_ended_ = seconds_now();
  target_.send_batch();
  ready_ = true;
  part_ = part;
  batch_ = batch;
}

int64_t batch_feed::index_of(const tensor_place &input) const {
  int64_t index = 0;
  while (program_.inputs[index].tensor.offset != input.offset)
    ++index;
  return index;
}

int64_t batch_feed::bytes_read() const {
  int64_t bytes = 0;
  for (const input_place &input : program_.inputs)
    if (data_.fills(input))
      bytes += byte_count(input.tensor);
  return bytes;
}

void batch_feed::prefetch(data_part part, int64_t batch) {
  if (!worker_)
    return;
  ahead_.part = part;
  ahead_.batch = batch;
  ahead_.complete = false;
  worker_->start(
      [](void *argument) {
        auto &feed = *static_cast<batch_feed *>(argument);
        prefetched &ahead = feed.ahead_;
        ahead.began = seconds_now();
        try {
          feed.data_.load(ahead.part, ahead.batch, [&feed](const tensor_place &input) {
            auto index = static_cast<size_t>(feed.index_of(input));
            return feed.ahead_.memory.data() + feed.ahead_.offsets[index];
          });
          ahead.complete = true;
          ahead.ended = seconds_now();
        } catch (const failure &) { // met again by `submit`, in its turn
        }
      },
      this);
}

// Whether it was there. In any case the loader is free afterwards.
bool batch_feed::take_prefetched(data_part part, int64_t batch) {
  if (!worker_)
    return false;
  worker_->wait();
  if (!ahead_.complete || ahead_.part != part || ahead_.batch != batch)
    return false;
  for (int64_t i = 0; i < std::ssize(program_.inputs); ++i) {
    const tensor_place &input = program_.inputs[i].tensor;
    if (data_.fills(program_.inputs[i]))
      memcpy(target_.batch_place(input),
             ahead_.memory.data() + ahead_.offsets[static_cast<size_t>(i)],
             static_cast<size_t>(byte_count(input)));
  }
  target_.send_batch();
  read_began_ = ahead_.began;
  read_ended_ = ahead_.ended;
  return true;
}

} // namespace trainc
