// SPDX-License-Identifier: Apache-2.0
//
// The memory of a rank's stage on its device: the stashes of its chunks, and places for each kind
// of message that it sends or receives. The compute stream copies what goes out to a place and
// takes what came in from one; between them a stream for each kind of message, with an NCCL group
// of its two ranks, has it on the way. So no message waits for another kind's, nor work for a
// message that it does not read while places are left.
#pragma once

#include "runtime/cuda/rank_group.h"
#include "runtime/cuda/streams.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/stage_layout.h"

#include <memory>
#include <vector>

namespace trainc {

class stage_memory {
public:
  // `program` is cut into stages. The device was chosen before.
  stage_memory(communicator &ranks, const program &program);
  ~stage_memory();
  stage_memory(const stage_memory &) = delete;
  stage_memory &operator=(const stage_memory &) = delete;

  int64_t device_bytes() const;
  void place(char *memory); // of so many bytes, which become zero
  // Meets the ranks of other stages and sends each kind of message once, while NCCL may still take
  // memory and wait as it likes. Collective. Throws `failure`: exit_machine; exit_usage, more kinds
  // of messages than a device keeps apart.
  void start();

  // Of a chunk of the rank's stage.
  char *slot(int chunk, int number) const;
  // Queues a message. With it goes whether its micro-batch has a fault.
  void move(const stage_action &message, const arenas &places);
  // Queues that a micro-batch has a fault where the scalar (f64, on the device) says so, and the
  // other way round.
  void note_fault(int64_t micro_batch, const char *scalar);
  void tell_fault(int64_t micro_batch, char *scalar);
  // Queues the end of a step: no micro-batch has a fault.
  void forget_faults();
  bool is_busy() const; // with messages
  // As of rank_group.
  void check() const;
  void abandon();

private:
  struct channel;
  channel &channel_of(const stage_action &message) const;
  void send_once(const channel &own) const;
  void send(channel &to, const char *made, int place, int64_t micro_batch);
  void receive(channel &from, char *read, int place, int64_t micro_batch);
  char *fault_of(int64_t micro_batch) const;

  communicator &ranks_;
  const pipeline &pipeline_;
  stage_layout layout_;
  std::vector<int64_t> stashes_;                   // by chunk: offset, -1 of another stage's
  std::vector<std::unique_ptr<channel>> channels_; // by boundary: activations, gradients; or null
  int64_t faults_ = 0, bytes_ = 0;
  char *memory_ = nullptr;
};

} // namespace trainc
