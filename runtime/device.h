// SPDX-License-Identifier: Apache-2.0
//
// What differs between targets, as the runtime sees it: where the arenas lie, how
// bytes get there and back, and how work is queued. runtime/cpu and runtime/cuda
// implement this class once each; a trainer is linked with one of them.
//
// Work is queued in order and may still be running when a call returns; `finish`
// waits for it. On the CPU every call is done when it returns.
#pragma once

#include "runtime/arena.h"
#include "runtime/options/options.h"
#include "runtime/program.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/exchange_times.h"
#include "runtime/step_clock.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>

namespace trainc {

// What a command needs memory for. Parameters alone (export) lie in host memory
// on every target, so that it needs no device.
enum class memory_use { parameters, forward, training };

// Scalars that a step keeps: the loss, its weight and the index check of each micro-batch, the
// gradient norm. Before that it keeps the weights of the parts of the loss.
constexpr int64_t kept_slots(const program &program, int64_t micro_batches) {
  return std::max<int64_t>(4, std::ssize(program.loss_parts)) * micro_batches + 1;
}

struct device_bytes {
  int64_t used = 0, free = 0;
};

// A program that is not ours, in which a model computes: its threads, signals and environment stay
// as they are.
struct host_program {
  char *memory = nullptr; // of the device, for the arenas, 64-byte aligned; null: our own
  int64_t memory_bytes = 0;
  int device = 0;         // of a GPU: its number
  void *stream = nullptr; // of a GPU: what work is queued on; null: one of our own
};

// The GPU that is current for the calling thread, -1: none; and another one.
int current_gpu();
void make_current(int gpu);

class device final : public arena_access {
public:
  // `computes` is false for commands that only copy parameters; then no device is
  // chosen and none has to be there. `host`: null in a trainer. Collective. Throws `failure`
  // (exit_machine): no device, driver too old, more ranks on this host than devices.
  device(const program &program, const trainer_options &options, communicator &ranks, bool computes,
         const host_program *host = nullptr);
  ~device() override;
  device(const device &) = delete;
  device &operator=(const device &) = delete;

  // For the start-up table: "2 threads each, ranks in shared memory", "NVIDIA H200".
  std::string description() const;

  // Makes the arenas, once. Collective. Compares all that will be allocated, with what the caller
  // will take of the host's memory besides, with what is free before allocating anything; throws
  // `failure` (exit_machine).
  void allocate(memory_use use, int64_t micro_batches, int64_t other_bytes = 0);
  // Where the host has mapped frozen weights, which outlive the device.
  void set_frozen_weights(char *base);
  // Addresses for the entry functions; the host may not be able to follow them.
  const arenas &places() const;
  // Whether ranks that train reach each other's memory; else they send messages. Of a single rank
  // it says nothing.
  bool shares_memory() const;
  int64_t accumulator_bytes() const; // of gradients, besides the arenas
  // Whether ranks that train keep parts of the optimizer's state; `holder` says whose they
  // are. Known before `allocate`.
  bool keeps_state_in_parts() const;

  // Before `allocate`, in a program that is not ours: what its memory must have.
  int64_t memory_bytes(memory_use use, int64_t micro_batches);
  // In a program that is not ours, which may have several devices: the calls that follow, of this
  // thread, are for this one.
  void use_here();
  // Whether the host can follow addresses of the arenas.
  bool is_host_memory() const;
  // Copies between the arenas and memory of the program's: the host's or the device's own. Waits
  // for queued work.
  void copy(void *to, const void *from, int64_t bytes);

  // Bytes of the arenas. These wait for queued work.
  const char *read(const char *address, int64_t bytes) override;
  void write(char *address, int64_t bytes, const std::function<void(char *)> &fill) override;
  int holder(const char *address, int64_t &bytes) const override;

  // Brings the 16-bit copies of parameters up to date, where the program has some and something
  // else than `update` has written parameters: `write`, `copy`, another rank. Before the first
  // micro-batch of a step and the first batch of an evaluation. Collective: ranks must have made
  // the same calls that write parameters.
  void round_parameters();
  // The program around has, or may have, written parameters at their addresses.
  void note_parameters_written();

  // ---- batches

  // Where the host writes an input of the next batch. Waits until that memory is
  // free. Inputs that are never written are zero.
  char *batch_place(const tensor_place &input);
  // The batch is complete: it may be sent ahead, while queued work is still running.
  void send_batch();
  // The work queued next uses the batch that was sent last.
  void submit_batch();
  // Whether the next batch can be written while queued work is still running.
  bool overlaps_batches() const;

  // ---- work

  // Queues an entry function. A target may record what it queues at some time and replay the
  // record afterwards.
  void run(entry which);
  // Of a step in stages, whose functions work on a slot of a chunk's stash: does what an action
  // says. Gradients are added as by sum_gradients; the ranks exchange their sums where the list has
  // it, and after the norm the total is in the first rank's arena.
  void run(const stage_action &action);
  // Moves a message of a micro-batch, with whether that has a fault.
  bool move(const stage_action &message, bool fault);
  // Copies the inputs that the action's chunk reads from the batch to the slot.
  void keep_inputs(const stage_action &action);
  // Whether an update follows the gradients that are made next, which a program that updates in
  // the backward pass must know before.
  void expect_update(bool follows);
  // Adds the gradients of micro-batch 0, 1, ... of this rank, in the order that
  // runtime/ranks/summation_order.h says. With the last of a step the ranks exchange their sums:
  // the total is in every rank's arena then. Of a program that shards gradients the ranks have
  // added them in forward_backward already, and the total is in one arena that all of them see.
  void sum_gradients(int64_t micro_batch);
  // Sets a scalar of the workspace arena for the work queued next: an f64, or 64 bits.
  void set_scalar(int64_t offset, double value) {
    set_bits(offset, std::bit_cast<uint64_t>(value));
  }
  void set_bits(int64_t offset, uint64_t bits);
  // Queues a copy of a scalar (f32 or f64) into slot `slot` of `kept_slots`, which `kept`
  // reads after `finish`. Of a scalar in the stash of the loss's chunk also from which of
  // its slots.
  void keep(const tensor_place &scalar, int slot, int stash_slot = 0);
  double kept(int slot) const;
  // Tells `clock`, unless it is null, of every step of the entry functions from now on; what a
  // target queues then runs by itself and not from a record.
  void observe(step_clock *clock);
  // When the last step's gradients were exchanged, where the target knows it: of no step in stages,
  // and of no program that shards gradients.
  exchange_times last_exchange() const;
  // Seconds that this rank has waited for other ranks, where the target knows it.
  double seconds_waited() const;
  // Waits for all queued work. Throws `failure` where some of it failed.
  void finish();
  // Notes when all that was queued before is done; `number` counts from 0 on. With 0 nothing may be
  // queued any more.
  void mark(size_t number);
  // When that was, by the clock of seconds_now(). After `finish`.
  double marked(size_t number) const;

  // ---- the machine

  // Floating-point operations per second of a large matrix product of the program's type with this
  // rank's threads, measured in about 0.1 s. The matrices lie where activations were, which are
  // lost; 0 where they do not fit, or it is not known.
  double product_rate();
  // Bytes per second, read and written, of a copy within the memory of the arenas; as
  // `product_rate`.
  double copy_rate();
  // Of the device's own memory, whoever has taken it; zeros where it is the host's,
  // or not known.
  device_bytes memory_in_use() const;
  // The same where activations must stay; `memory` is 64-byte aligned.
  double product_rate(char *memory, int64_t bytes);

private:
  struct implementation;
  std::unique_ptr<implementation> own_;
};

} // namespace trainc
