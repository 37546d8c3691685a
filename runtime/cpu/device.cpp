// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a device: arenas in this process's memory, work done at once.
#include "runtime/device.h"
#include "runtime/byte_text.h"

#include "runtime/cpu/backward_update.h"
#include "runtime/cpu/product_rate.h"
#include "runtime/cpu/ranks/gradient_shards.h"
#include "runtime/cpu/ranks/gradient_sum.h"
#include "runtime/cpu/ranks/replica_exchange.h"
#include "runtime/cpu/ranks/shared_state.h"
#include "runtime/cpu/ranks/shared_wait.h"
#include "runtime/cpu/stage_memory.h"
#include "runtime/cpu/team_waiting.h"
#include "runtime/files/data_types.h"
#include "runtime/process/clock.h"
#include "runtime/ranks/summation_order.h"
#include "runtime/run/program_memory.h"
#include "runtime/run/threads.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace trainc {

struct device::implementation {
  const program &prog;
  const trainer_options &options;
  communicator &ranks;
  int threads = 0; // none: nothing is computed
  int cores = 1;   // this rank's share of the host's
  arena_set memory = {};
  bool is_given = false; // by a program that is not ours
  std::optional<team_waiting> waiting = {};
  std::optional<gradient_sum> sum = {};
  std::optional<gradient_shards> shards = {}; // in place of it, where no rank keeps all gradients
  std::optional<backward_update> in_backward = {}; // in place of both, where it has the update
  bool update_follows = true;
  std::optional<shared_state> state = {};        // where ranks share it
  std::optional<stage_memory> stage = {};        // of a step in stages
  std::optional<replica_exchange> replicas = {}; // where steps exchange something
  rank_memory planned = {};                      // of a rank that trains
  int64_t micro_batches = 1;
  int64_t micro_batch = 0;    // of the next gradients in one piece
  bool overlaps = false;      // the exchange and the backward pass
  bool updated = false;       // by this rank, others may still be at it
  bool copies_are_old = true; // of parameters
  std::vector<double> kept = {};
  std::vector<double> marks = {}; // seconds

  int64_t bytes_for(memory_use use, const stage_layout &layout, int64_t batches, bool in_memory);
};

namespace {

// What oneDNN packs within a matrix product: at most a block of each operand of any size.
constexpr int64_t packing_bytes_per_thread = 16 << 20;

int64_t arena_bytes(const program &program, arena_kind kind) {
  return program.arena_bytes[static_cast<int>(kind)];
}

std::vector<arena_kind> arenas_for(memory_use use) {
  if (use == memory_use::parameters)
    return {arena_kind::parameters};
  if (use == memory_use::forward)
    return {arena_kind::parameters, arena_kind::activations, arena_kind::workspace};
  return {arena_kind::parameters, arena_kind::optimizer_state, arena_kind::activations,
          arena_kind::workspace}; // gradients are made by gradient_sum or gradient_shards
}

// Of what a stage's functions and all others need; else of all.
int64_t activation_bytes(const program &program, const stage_layout &layout) {
  return layout.stages == 1 ? arena_bytes(program, arena_kind::activations)
                            : program.stages->activation_bytes(layout.stage);
}

std::vector<element_range> gradients_of_stage(const program &program, int stage) {
  std::vector<element_range> all;
  program.stages->for_each_chunk(stage, [&](const chunk_program &chunk, int) {
    for (const range_list &list : {chunk.gradients, chunk.weight_gradients})
      all.insert(all.end(), list.begin(), list.end());
  });
  return all;
}

shard_request request_for(const program &program, stage_layout layout, int64_t micro_batches,
                          const trainer_options &options) {
  shard_request request = {layout, micro_batches, {}, options.communication, options.accumulated};
  for (layout.stage = 0; layout.stage < layout.stages; ++layout.stage)
    request.activation_bytes.push_back(activation_bytes(program, layout));
  return request;
}

// Whether gradients are exchanged while the backward pass goes on: unless it is asked for, where
// they take time and each rank has a core that its threads leave. Collective.
bool overlaps(const program &program, const trainer_options &options, communicator &ranks,
              bool has_core) {
  if (ranks.size() == 1 || program.buckets.empty() || options.exchange != exchange_kind::automatic)
    return ranks.size() > 1 && options.exchange == exchange_kind::overlapped;
  if (ranks.ranks_on_host() < ranks.size() || program.summed_bytes < least_overlapped_bytes ||
      options.communication == communication_kind::messages)
    return false;
  std::vector<char> have(static_cast<size_t>(ranks.size()));
  const char has = has_core ? 1 : 0;
  ranks.gather(&has, 1, have.data());
  return std::count(have.begin(), have.end(), 1) == ranks.size();
}

bool is_state(arena_kind kind) {
  return kind == arena_kind::parameters || kind == arena_kind::optimizer_state;
}

} // namespace

// Of a rank; of those of several stages the mean. Constants are in the binary.
int64_t device::implementation::bytes_for(memory_use use, const stage_layout &layout,
                                          int64_t batches, bool in_memory) {
  int64_t bytes = 0;
  if (use != memory_use::training) {
    for (arena_kind kind : arenas_for(use))
      bytes += arena_bytes(prog, kind);
    return bytes;
  }
  const std::vector<rank_memory> all =
      memory_of_ranks(memory_needs_of(prog, in_memory),
                      {layout.replicas, ranks.ranks_on_host(), batches,
                       sharing_of(prog, options.shard, in_memory), in_memory, options.accumulated});
  for (const rank_memory &each : all)
    bytes += each.bytes() - each.constants;
  planned = all[static_cast<size_t>(layout.stage)];
  return bytes / static_cast<int64_t>(all.size());
}

device::device(const program &program, const trainer_options &options, communicator &ranks,
               bool computes, const host_program *host)
    : own_(new implementation{program, options, ranks}) {
  own_->is_given = host && host->memory;
  if (own_->is_given)
    own_->memory.take_from(host->memory, host->memory_bytes);
  own_->memory.places.constants = static_cast<const char *>(program.constants);
  own_->cores = share_of_cores(ranks);
  ranks.together([&] {
    if (!computes)
      return;
    own_->threads = choose_threads(static_cast<int>(options.threads.value_or(0)), own_->cores);
    if (!host)
      own_->waiting.emplace(own_->threads);
  });
}

device::~device() = default;

std::string device::description() const {
  std::string text = format_text("%d thread%s", own_->threads, own_->threads == 1 ? "" : "s");
  if (own_->ranks.size() == 1)
    return text;
  text += std::string(" each, ranks ") + (shares_memory() ? "in shared memory" : "with messages") +
          (own_->overlaps ? ", exchange beside backward" : "");
  if (!own_->state)
    return text;
  int64_t bytes = own_->planned.parameters + own_->planned.state;
  if (own_->shards)
    bytes += own_->planned.accumulators;
  return text + format_text("; parameters%s and optimizer state once a host, %s a rank",
                            own_->shards ? ", gradients" : "", byte_text(bytes).c_str());
}

bool device::shares_memory() const {
  return own_->shards || (own_->sum && own_->sum->uses_shared_memory());
}

void device::allocate(memory_use use, int64_t micro_batches, int64_t other_bytes) {
  implementation &own = *own_;
  own.kept.resize(static_cast<size_t>(kept_slots(own.prog, micro_batches)));
  own.micro_batches = micro_batches;
  const bool in_stages = use == memory_use::training && own.prog.stages;
  const stage_layout layout = in_stages ? stage_layout(own.prog, own.ranks.rank(), own.ranks.size())
                                        : stage_layout(own.ranks.rank(), own.ranks.size());
  // Stages that share memory keep parameters and state once, as those do that are told to.
  auto shares_state = [&](bool in_memory) {
    return use == memory_use::training && own.ranks.size() > 1 &&
           ((in_stages && in_memory) || own.options.shard != shard_kind::none);
  };
  const bool shards = use == memory_use::training && own.prog.shards_gradients;
  bool in_memory = own.ranks.ranks_on_host() == own.ranks.size() &&
                   own.options.communication != communication_kind::messages; // as it seems
  own.ranks.together([&] {
    const int64_t more = other_bytes + own.threads * packing_bytes_per_thread;
    const int64_t bytes = own.bytes_for(use, layout, micro_batches, in_memory);
    check_memory(own.is_given ? more : more + bytes, own.ranks.ranks_on_host());
  });
  // Inside, ranks talk to each other: an error of one must not leave others waiting.
  if (shards) {
    own.shards.emplace(own.ranks, own.memory, own.prog,
                       request_for(own.prog, layout, micro_batches, own.options));
    own.memory.places.base[static_cast<int>(arena_kind::gradients)] = own.shards->total();
    own.memory.places.base[static_cast<int>(arena_kind::activations)] = own.shards->activations();
    own.memory.places.exchange = &*own.shards;
  } else if (use == memory_use::training && own.prog.updates_in_backward) {
    own.in_backward.emplace(own.prog);
  } else if (use == memory_use::training) {
    gradient_request request;
    request.type = own.prog.parameter_type;
    request.arena_bytes = arena_bytes(own.prog, arena_kind::gradients);
    request.reduced_bytes = own.prog.summed_bytes;
    request.micro_batches = micro_batches;
    request.kind = own.options.communication;
    request.accumulated = own.options.accumulated;
    request.layout = layout;
    own.overlaps = overlaps(own.prog, own.options, own.ranks, own.cores > own.threads);
    if (own.overlaps)
      request.buckets = own.prog.buckets;
    request.must_overlap = own.options.exchange == exchange_kind::overlapped;
    if (in_stages)
      request.ranges = gradients_of_stage(own.prog, layout.stage);
    own.sum.emplace(own.ranks, own.memory, request);
    in_memory = own.sum->uses_shared_memory();
    own.overlaps = own.sum->overlaps(); // ranks of one host may be in several containers
    own.memory.places.base[static_cast<int>(arena_kind::gradients)] = own.sum->total();
  }
  if (use == memory_use::training)
    (void)own.bytes_for(use, layout, micro_batches, in_memory); // as it is
  const bool shares = shares_state(in_memory);
  if (shares) {
    own.state.emplace(own.ranks, own.prog);
    own.memory.places.updated = own.state->own();
  }
  if (in_stages)
    own.stage.emplace(own.ranks, own.memory, own.prog, own.options.communication);
  if (use == memory_use::training && own.prog.rank_exchange_bytes > 0 && layout.replicas > 1) {
    own.replicas.emplace(own.ranks, layout, own.prog.rank_exchange_bytes,
                         own.options.communication);
    own.memory.places.ranks = &*own.replicas;
  }
  own.ranks.together([&] {
    for (arena_kind kind : arenas_for(use))
      if (shares && is_state(kind))
        own.memory.places.base[static_cast<int>(kind)] = own.state->base(kind);
      else if (!shards || kind != arena_kind::activations)
        own.memory.allocate(kind, kind == arena_kind::activations
                                      ? activation_bytes(own.prog, layout)
                                      : arena_bytes(own.prog, kind));
  });
}

void device::set_frozen_weights(char *base) {
  own_->memory.places.base[static_cast<int>(arena_kind::frozen)] = base;
}

const arenas &device::places() const { return own_->memory.places; }

int64_t device::accumulator_bytes() const { return own_->planned.accumulators; }

// Where ranks share it, each sees all of it.
bool device::keeps_state_in_parts() const { return false; }
int device::holder(const char *, int64_t &) const { return every_rank; }

int64_t device::memory_bytes(memory_use use, int64_t micro_batches) {
  const program &prog = own_->prog;
  int64_t bytes = 0;
  for (arena_kind kind : arenas_for(use))
    bytes += arena_set::bytes_taken(arena_bytes(prog, kind));
  if (use != memory_use::training)
    return bytes;
  const summation_order order(0, 1, micro_batches, exchanged_sums::unadded,
                              own_->options.accumulated);
  return bytes + arena_set::bytes_taken((1 + order.accumulators()) *
                                        arena_bytes(prog, arena_kind::gradients));
}

int current_gpu() { return -1; }
void make_current(int) {}
void device::use_here() {}
bool device::is_host_memory() const { return true; }
void device::copy(void *to, const void *from, int64_t bytes) {
  own_->copies_are_old |= is_parameter(own_->prog, places(), to);
  memcpy(to, from, static_cast<size_t>(bytes));
}

const char *device::read(const char *address, int64_t) { return address; }

void device::write(char *address, int64_t, const std::function<void(char *)> &fill) {
  own_->copies_are_old |= is_parameter(own_->prog, places(), address);
  if (!own_->state || own_->state->is_writer() || !own_->state->holds(address))
    fill(address);
}

char *device::batch_place(const tensor_place &input) {
  return places()[input.arena] + input.offset;
}
void device::send_batch() {}
void device::submit_batch() {}
bool device::overlaps_batches() const { return false; }

void device::note_parameters_written() { own_->copies_are_old = true; }

void device::round_parameters() {
  if (!own_->prog.round_parameters || !own_->copies_are_old)
    return;
  own_->copies_are_old = false;
  if (!own_->state)
    return run(entry::round_parameters);
  if (own_->state->is_writer())
    run(entry::round_parameters);
  own_->ranks.barrier();
}

void device::run(entry which) {
  arenas memory = places();
  const bool makes_gradients = which == entry::forward_backward;
  if (makes_gradients && own_->sum) {
    memory.base[static_cast<int>(arena_kind::gradients)] = own_->sum->gradients();
    memory.exchange = own_->sum->begin(own_->micro_batch);
  }
  if (makes_gradients && own_->shards)
    own_->shards->begin(own_->micro_batch, own_->prog.buckets);
  if (makes_gradients && own_->in_backward) {
    set_scalar(own_->prog.sum_of_squares_offset, 0);
    own_->in_backward->begin(memory, own_->update_follows);
    memory.exchange = &*own_->in_backward;
  } else if (which == entry::update && own_->in_backward) { // which leaves the norm alone
    set_scalar(own_->prog.sum_of_squares_offset, own_->in_backward->sum_of_squares());
    memory.base[static_cast<int>(arena_kind::gradients)] = memory[arena_kind::activations];
    memory.updated = {0, 0};
  }
  if (memory.clock)
    memory.clock->uses(memory);
  call(own_->prog, which, memory);
  if (makes_gradients && own_->shards)
    own_->shards->end();
  own_->updated |= which == entry::update;
}

void device::run(const stage_action &action) {
  if (action.kind == stage_action_kind::norm) {
    if (own_->sum)
      own_->sum->share_totals(*own_->prog.stages);
    own_->ranks.barrier();
    return own_->stage->end_step();
  }
  const chunk_program &chunk = own_->prog.stages->chunks[action.chunk];
  const bool shards = own_->shards.has_value();
  if (action.kind == stage_action_kind::reduce) // shards are added already
    return shards ? void() : own_->sum->exchange({chunk.gradients, chunk.weight_gradients});
  arenas memory = places();
  memory.base[static_cast<int>(arena_kind::stash)] = own_->stage->slot(action.chunk, action.slot);
  if (!shards)
    memory.base[static_cast<int>(arena_kind::gradients)] = own_->sum->gradients();
  const auto function = chunk.function_of(action.kind);
  if (memory.clock)
    memory.clock->uses(memory);
  if (action.kind == stage_action_kind::forward)
    return function(memory);
  const bool second = action.kind == stage_action_kind::weight_gradient;
  if (shards)
    own_->shards->begin(action.micro_batch, second ? chunk.weight_buckets : chunk.buckets);
  function(memory);
  if (shards)
    return own_->shards->end();
  own_->sum->add(action.micro_batch, second ? chunk.weight_gradients : chunk.gradients);
}

bool device::move(const stage_action &message, bool fault) {
  return own_->stage->move(message, places(), fault);
}

void device::keep_inputs(const stage_action &action) {
  const chunk_program &chunk = own_->prog.stages->chunks[action.chunk];
  for (const chunk_input &kept : chunk.inputs) {
    const tensor_place &input = own_->prog.inputs[kept.number].tensor;
    memcpy(own_->stage->slot(action.chunk, action.slot) + kept.offset, batch_place(input),
           static_cast<size_t>(byte_count(input)));
  }
}

void device::expect_update(bool follows) { own_->update_follows = follows; }

void device::sum_gradients(int64_t micro_batch) {
  own_->micro_batch = (micro_batch + 1) % own_->micro_batches;
  if (own_->shards || own_->in_backward) // added already, or used up
    return;
  own_->sum->add(micro_batch);
  if (micro_batch != own_->micro_batches - 1)
    return;
  own_->sum->exchange();
  own_->memory.places.base[static_cast<int>(arena_kind::gradients)] = own_->sum->total();
}
void device::finish() {
  if (own_->state && own_->updated)
    own_->ranks.barrier(); // the others have updated their parts
  own_->updated = false;
  if (own_->waiting)
    own_->waiting->look();
}

void device::mark(size_t number) {
  finish();
  own_->marks.resize(std::max(own_->marks.size(), number + 1));
  own_->marks[number] = seconds_now();
}

double device::marked(size_t number) const { return own_->marks[number]; }

void device::observe(step_clock *clock) { own_->memory.places.clock = clock; }
double device::seconds_waited() const { return trainc::seconds_waited(); }
exchange_times device::last_exchange() const {
  return own_->sum ? own_->sum->times() : exchange_times();
}

void device::set_bits(int64_t offset, uint64_t bits) {
  memcpy(places()[arena_kind::workspace] + offset, &bits, sizeof bits);
}

void device::keep(const tensor_place &scalar, int slot, int stash_slot) {
  const char *base = scalar.arena == arena_kind::stash
                         ? own_->stage->slot(own_->prog.stages->loss_chunk, stash_slot)
                         : places()[scalar.arena];
  own_->kept[static_cast<size_t>(slot)] = number_at(scalar.type, base + scalar.offset);
}

double device::kept(int slot) const { return own_->kept[static_cast<size_t>(slot)]; }

device_bytes device::memory_in_use() const { return {}; }

double device::copy_rate() { return 0; }

// Products of f64 are a plain loop, which is not a measure of the machine.
double device::product_rate(char *memory, int64_t bytes) {
  return own_->prog.parameter_type == data_type::f32 ? measure_product_rate(memory, bytes) : 0;
}

double device::product_rate() {
  const stage_layout layout(own_->prog, own_->ranks.rank(), own_->ranks.size());
  return product_rate(places()[arena_kind::activations], activation_bytes(own_->prog, layout));
}

} // namespace trainc
