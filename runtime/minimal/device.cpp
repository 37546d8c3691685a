// SPDX-License-Identifier: Apache-2.0
//
// A processor as a device for one thread, without ranks: arenas in this process's memory, work done
// at once.
#include "runtime/device.h"

#include "runtime/cpu/ranks/flat_sum.h"
#include "runtime/files/data_types.h"

#include <cstring>
#include <optional>

namespace trainc {

class communicator::time_limit {};
communicator::communicator(only_rank) {}
communicator::~communicator() = default;

int current_gpu() { return -1; }
void make_current(int) {}

struct device::implementation {
  const program &prog;
  arena_set memory = {};
  int64_t micro_batches = 1;
  std::optional<summation_order> order = {};
  std::vector<char *> accumulators = {};
  std::vector<summand> summands = {}; // of the addition that is going on
  std::vector<double> kept = {};
  bool copies_are_old = true; // of parameters

  char *place(arena_kind kind) const { return memory.places[kind]; }
  int64_t bytes(arena_kind kind) const { return prog.arena_bytes[static_cast<int>(kind)]; }
  char *place_of(int accumulator) const {
    return accumulator == in_gradients ? place(arena_kind::gradients)
                                       : accumulators[static_cast<size_t>(accumulator)];
  }
  void add(const std::vector<addend> &addends, int target) {
    summands.clear();
    for (const addend &each : addends)
      summands.push_back({place_of(each.accumulator), each.additions});
    char *const to = place_of(target);
    sum_in_order(prog.parameter_type, summands, &to, 1, 0,
                 prog.summed_bytes / bytes_of(prog.parameter_type));
  }
};

static std::vector<arena_kind> arenas_for(memory_use use) {
  std::vector<arena_kind> kinds = {arena_kind::parameters, arena_kind::activations,
                                   arena_kind::workspace};
  if (use == memory_use::training)
    kinds.push_back(arena_kind::optimizer_state);
  return kinds;
}

device::device(const program &program, const trainer_options &, communicator &, bool,
               const host_program *host)
    : own_(new implementation{program}) {
  if (host && host->memory)
    own_->memory.take_from(host->memory, host->memory_bytes);
  own_->memory.places.constants = static_cast<const char *>(program.constants);
}

device::~device() = default;

void device::allocate(memory_use use, int64_t micro_batches, int64_t) {
  implementation &own = *own_;
  own.kept.resize(static_cast<size_t>(kept_slots(own.prog, micro_batches)));
  own.micro_batches = micro_batches;
  for (arena_kind kind : arenas_for(use))
    own.memory.allocate(kind, own.bytes(kind));
  if (use != memory_use::training)
    return;
  own.memory.allocate(arena_kind::gradients, own.bytes(arena_kind::gradients));
  own.order.emplace(0, 1, micro_batches, exchanged_sums::unadded, accumulation::pairwise);
  for (int i = 0; i < own.order->accumulators(); ++i)
    own.accumulators.push_back(own.memory.allocate(own.bytes(arena_kind::gradients)));
  own.summands.reserve(static_cast<size_t>(own.order->accumulators()) + 1);
}

const arenas &device::places() const { return own_->memory.places; }

const char *device::read(const char *address, int64_t) { return address; }
void device::write(char *address, int64_t, const std::function<void(char *)> &fill) {
  own_->copies_are_old |= is_parameter(own_->prog, places(), address);
  fill(address);
}
int device::holder(const char *, int64_t &) const { return every_rank; }

int64_t device::memory_bytes(memory_use use, int64_t micro_batches) {
  implementation &own = *own_;
  int64_t bytes = 0;
  for (arena_kind kind : arenas_for(use))
    bytes += arena_set::bytes_taken(own.bytes(kind));
  if (use != memory_use::training)
    return bytes;
  const summation_order order(0, 1, micro_batches, exchanged_sums::unadded, accumulation::pairwise);
  return bytes +
         (1 + order.accumulators()) * arena_set::bytes_taken(own.bytes(arena_kind::gradients));
}

void device::use_here() {}
bool device::is_host_memory() const { return true; }
void device::copy(void *to, const void *from, int64_t bytes) {
  own_->copies_are_old |= is_parameter(own_->prog, places(), to);
  memcpy(to, from, static_cast<size_t>(bytes));
}

void device::note_parameters_written() { own_->copies_are_old = true; }

void device::round_parameters() {
  if (own_->prog.round_parameters && own_->copies_are_old)
    run(entry::round_parameters);
  own_->copies_are_old = false;
}

void device::run(entry which) { call(own_->prog, which, places()); }

void device::expect_update(bool) {}

void device::sum_gradients(int64_t micro_batch) {
  if (const summation &own = own_->order->own(micro_batch); own.moves())
    own_->add(own.addends, own.target);
  if (micro_batch == own_->micro_batches - 1 && own_->order->exchange().size() > 1)
    own_->add(own_->order->exchange(), in_gradients);
}

void device::finish() {}

void device::set_bits(int64_t offset, uint64_t bits) {
  memcpy(own_->place(arena_kind::workspace) + offset, &bits, sizeof bits);
}

void device::keep(const tensor_place &scalar, int slot, int) {
  own_->kept[static_cast<size_t>(slot)] =
      number_at(scalar.type, own_->place(scalar.arena) + scalar.offset);
}

double device::kept(int slot) const { return own_->kept[static_cast<size_t>(slot)]; }

} // namespace trainc
