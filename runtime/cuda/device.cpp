// SPDX-License-Identifier: Apache-2.0
//
// The device of a rank: a GPU with everything in one allocation. Commands that only
// copy parameters keep them in host memory and need none.
#include "runtime/device.h"
#include "runtime/byte_text.h"

#include "runtime/cuda/batches.h"
#include "runtime/cuda/bucket_exchange.h"
#include "runtime/cuda/copy_rate.h"
#include "runtime/cuda/device_choice.h"
#include "runtime/cuda/errors.h"
#include "runtime/cuda/gradient_shards.h"
#include "runtime/cuda/gradient_sum.h"
#include "runtime/cuda/graphs.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/products/matmul.h"
#include "runtime/cuda/scalars.h"
#include "runtime/cuda/stage_memory.h"
#include "runtime/cuda/streams.h"
#include "runtime/cuda/update_shares.h"
#include "runtime/cuda/work_place.h"
#include "runtime/files/data_types.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

namespace trainc {
namespace {

constexpr int64_t kept_bytes = 8;       // of a scalar that `keep` copies
constexpr int64_t arena_alignment = 64; // bytes

// In a program that is not ours nothing is measured, and no file kept: its instances have the same
// bits all the same.
product_settings product_settings_of(const trainer_options &options, bool is_hosted) {
  product_settings result;
  result.tf32 = options.math == product_math::tf32;
  result.epilogues = !options.no_epilogues;
  result.cudnn = !options.no_cudnn;
  result.timed = !options.no_tuning && !is_hosted;
  if (is_hosted)
    return result;
  result.choice_file = options.product_choices;
  if (result.choice_file.empty())
    result.choice_file =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "product_choices.txt";
  else if (result.choice_file == "none")
    result.choice_file.clear();
  return result;
}

// What is recorded: the entry functions, forward_backward with an exchange beside it, and of a step
// in stages of each chunk its functions on each slot.
constexpr size_t overlapped_entry = entry_count, first_of_chunks = entry_count + 1;
constexpr size_t functions_of_chunk = 3;

size_t chunk_pieces(const program &program) {
  size_t slots = 0;
  if (program.stages)
    for (const chunk_program &chunk : program.stages->chunks)
      slots += static_cast<size_t>(chunk.slots);
  return slots * functions_of_chunk;
}

size_t number_of_piece(const program &program, const stage_action &action) {
  auto slot = static_cast<size_t>(action.slot);
  for (int i = 0; i < action.chunk; ++i)
    slot += static_cast<size_t>(program.stages->chunks[i].slots);
  return slot * functions_of_chunk + (action.kind == stage_action_kind::forward           ? 0
                                      : action.kind == stage_action_kind::weight_gradient ? 1
                                                                                          : 2);
}

int stage_of(const program &program, const communicator &ranks) {
  return stage_layout(program, ranks.rank(), ranks.size()).stage;
}

bool overlaps_exchange(const program &program, const trainer_options &options, int ranks) {
  if (program.shards_gradients)
    return true;
  if (ranks == 1 || program.stages || program.buckets.empty())
    return false;
  return options.exchange == exchange_kind::overlapped ||
         (options.exchange == exchange_kind::automatic &&
          program.summed_bytes >= least_overlapped_bytes);
}

} // namespace

// What exists where a GPU computes.
struct computing_device {
  computing_device(const program &program, communicator &ranks)
      : chosen(choose_device(ranks)), streams(work), inputs(program) {
    work_at(&work);
  }
  computing_device(const program &program, communicator &ranks, const host_program &host)
      : chosen(choose_device(ranks, host.device)),
        streams(work, static_cast<cudaStream_t>(host.stream)), inputs(program), is_hosted(true) {
    if (host.memory)
      memory.take_from(host.memory, host.memory_bytes);
    work_at(&work);
  }

  ~computing_device();
  bool is_busy() const {
    return cudaStreamQuery(streams.compute) == cudaErrorNotReady || (stage && stage->is_busy()) ||
           (exchange && exchange->is_busy());
  }
  // As of rank_group, of all groups.
  void check() const;

  std::string name() const {
    return format_text("%s, device %d", chosen.name.c_str(), chosen.index);
  }

  chosen_device chosen;
  device_memory memory;
  work_place work;
  trainc::streams streams;
  time_marks marks;
  batches inputs;
  bool is_hosted = false; // in a program that is not ours, which writes inputs to their places
  std::unique_ptr<gradient_sum> gradients;
  std::unique_ptr<gradient_shards> shards; // in place of it, where no rank keeps all gradients
  std::unique_ptr<stage_memory> stage;     // of a step in stages
  graphs recorded;
  std::unique_ptr<bucket_exchange> exchange; // where it goes on beside the backward pass
  scalar_list scalars;                       // set, not yet queued
  pinned_memory transfer, kept;
  std::vector<data_type> kept_types;
};

void computing_device::check() const {
  if (gradients)
    gradients->check();
  if (shards)
    shards->check();
  if (stage)
    stage->check();
}

// Ranks that end in peace leave their groups together; otherwise nobody may wait for the others in
// any of them.
computing_device::~computing_device() {
  if (&own_work() == &work)
    work_at(nullptr);
  bool in_peace = !is_busy();
  try {
    check();
  } catch (const failure &) {
    in_peace = false;
  }
  if (in_peace)
    return;
  if (stage)
    stage->abandon();
  if (gradients)
    gradients->abandon();
  if (shards)
    shards->abandon();
}

struct device::implementation {
  implementation(const program &program, const trainer_options &options, communicator &ranks)
      : prog(program), options(options), ranks(ranks) {}

  void plan_work(memory_use use);
  void plan_memory(memory_use use);
  void plan_workspace();
  void plan_exchange(memory_use use, int64_t micro_batches);
  void allocate_on_device(memory_use use, int64_t micro_batches, int64_t other_bytes);
  void take_memory(memory_use use, int64_t micro_batches, int64_t other_bytes);
  void set_zero(memory_use use);
  void queue_scalars();
  int64_t arena_bytes(int kind) const;
  void share_out(const stage_layout &layout);
  // What is kept alone at this address; `bytes` become those of one share. Null: nothing.
  const update_share *share_at(const char *address, int64_t &bytes) const;
  void run_chunk(const stage_action &action);
  void share_updates(entry which);
  bool begins_exchange(entry which) const;
  char *gathered_gradients() const;

  const program &prog;
  const trainer_options &options;
  communicator &ranks;
  arena_set host;                      // of commands that only copy parameters
  std::optional<computing_device> gpu; // of the others
  arenas places = {};
  update_shares shares;
  int64_t micro_batches = 1, micro_batch = 0; // of a step; of the next gradients in one piece
  bool copies_are_old = true;                 // of parameters
  char *accumulators = nullptr, *received = nullptr, *sums = nullptr, *constants = nullptr,
       *workspace = nullptr, *staging = nullptr, *stage_place = nullptr;
};

device::device(const program &program, const trainer_options &options, communicator &ranks,
               bool computes, const host_program *host)
    : own_(std::make_unique<implementation>(program, options, ranks)) {
  if (!computes)
    return;
  if (host) {
    own_->gpu.emplace(program, ranks, *host);
    return;
  }
  // Streams of messages must not wait for each other, nor a kernel for others to be loaded. A rank
  // alone has no messages, and starts sooner without what it does not run.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  if (ranks.size() > 1)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  own_->gpu.emplace(program, ranks);
}

device::~device() = default;

std::string device::description() const {
  if (!own_->gpu)
    return "none";
  return format_text("%s, %s allocated%s", own_->gpu->name().c_str(),
                     byte_text(own_->gpu->memory.planned_bytes()).c_str(),
                     own_->gpu->exchange && own_->gpu->gradients ? ", exchange beside backward"
                                                                 : "");
}

// A program for GPUs has frozen weights among its parameters.
void device::set_frozen_weights(char *) {}

const arenas &device::places() const { return own_->places; }

bool device::shares_memory() const { return true; } // NCCL finds the way, between hosts too

int64_t device::accumulator_bytes() const {
  if (!own_->gpu)
    return 0;
  return own_->gpu->shards      ? own_->gpu->shards->accumulator_bytes()
         : own_->gpu->gradients ? own_->gpu->gradients->accumulator_bytes()
                                : 0;
}

bool device::keeps_state_in_parts() const {
  return own_->gpu && update_shares::are_there(own_->prog, own_->ranks.size(),
                                               own_->options.shard != shard_kind::none);
}

// ---- memory

void device::implementation::share_out(const stage_layout &layout) {
  const bool among_replicas = options.shard != shard_kind::none;
  if (among_replicas && !prog.updates_in_parts)
    ranks.together([&] {
      throw failure(exit_usage,
                    format_text("option --shard: the update of %s takes parameters as a whole and "
                                "cannot be shared out\n  try: --shard none",
                                prog.optimizer_name));
    });
  if (!update_shares::are_there(prog, ranks.size(), among_replicas))
    return;
  shares = gpu->shards ? update_shares(prog, layout, gpu->shards->shares())
                       : update_shares(prog, layout, among_replicas);
  places.updated_ranges = shares.own();
}

void device::allocate(memory_use use, int64_t micro_batches, int64_t other_bytes) {
  implementation &own = *own_;
  if (own.gpu) {
    own.allocate_on_device(use, micro_batches, other_bytes);
    return;
  }
  own.ranks.together([&] {
    int64_t bytes = own.prog.arena_bytes[static_cast<int>(arena_kind::parameters)];
    check_memory(bytes, own.ranks.ranks_on_host());
    own.host.allocate(arena_kind::parameters, bytes);
    own.places = own.host.places;
  });
}

int current_gpu() {
  int number = -1;
  return cudaGetDevice(&number) == cudaSuccess ? number : -1;
}

void make_current(int gpu) {
  if (gpu >= 0)
    cudaSetDevice(gpu);
}

void device::use_here() {
  check_cuda(cudaSetDevice(own_->gpu->chosen.index), "choosing a GPU");
  work_at(&own_->gpu->work);
}

bool device::is_host_memory() const { return !own_->gpu; }

void device::copy(void *to, const void *from, int64_t bytes) {
  own_->copies_are_old |= is_parameter(own_->prog, own_->places, to);
  check_cuda(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, compute_stream()),
      "copy of a tensor");
  check_cuda(cudaStreamSynchronize(compute_stream()), "copy of a tensor");
}

int64_t device::memory_bytes(memory_use use, int64_t micro_batches) {
  own_->plan_exchange(use, micro_batches);
  own_->plan_memory(use);
  own_->plan_work(use);
  own_->plan_workspace();
  return own_->gpu->memory.planned_bytes();
}

void device::implementation::plan_exchange(memory_use use, int64_t micro_batches_of_step) {
  if (use != memory_use::training)
    return;
  computing_device &own = *gpu;
  micro_batches = micro_batches_of_step;
  const stage_layout layout(prog, ranks.rank(), ranks.size());
  if (prog.shards_gradients) {
    own.shards = std::make_unique<gradient_shards>(ranks, prog, micro_batches, options.accumulated);
    own.shards->start();
  } else {
    own.gradients =
        std::make_unique<gradient_sum>(ranks, layout, prog.parameter_type, prog.summed_bytes,
                                       micro_batches, options.accumulated, prog.stages);
    own.gradients->start();
  }
  share_out(layout);
  if (prog.stages) {
    own.stage = std::make_unique<stage_memory>(ranks, prog);
    own.stage->start();
  }
}

void device::implementation::allocate_on_device(memory_use use, int64_t micro_batches,
                                                int64_t other_bytes) {
  computing_device &own = *gpu;
  plan_exchange(use, micro_batches);
  own.recorded.allow(first_of_chunks + chunk_pieces(prog));
  ranks.together([&] {
    plan_memory(use);
    own.memory.check(own.name());
  });
  if (use == memory_use::training && overlaps_exchange(prog, options, ranks.size()))
    own.exchange =
        std::make_unique<bucket_exchange>(own.recorded, prog.shards_gradients, [this](int bucket) {
          if (gpu->shards)
            gpu->shards->queue(micro_batch, bucket);
          else
            gpu->gradients->queue_last(prog.buckets[bucket]);
        });
  plan_work(use); // takes some memory for a while
  ranks.together([&] { take_memory(use, micro_batches, other_bytes); });
  ranks.together([&] {
    // Sums of zeros, so that ranks meet each other now and not in the first step.
    if (own.gradients && !own.stage) {
      for (int64_t j = 0; j < micro_batches; ++j)
        own.gradients->queue(j);
    }
    if (own.shards) {
      own.shards->meet();
      own.shards->gather(places[arena_kind::gradients]);
    }
    if (own.stage) {
      prog.stages->for_each_chunk(stage_of(prog, ranks), [&](const chunk_program &chunk, int) {
        own.gradients->exchange({chunk.gradients, chunk.weight_gradients});
      });
      own.gradients->share_totals(*prog.stages);
    }
    check_cuda(cudaStreamSynchronize(compute_stream()), "start of the device");
  });
}

// Functions that need memory while they run take turns.
void device::implementation::plan_workspace() {
  gpu->memory.plan("workspace of functions",
                   std::max(product_workspace_bytes, planned_scratch_bytes()), &workspace);
}

void device::implementation::take_memory(memory_use use, int64_t micro_batches,
                                         int64_t other_bytes) {
  computing_device &own = *gpu;
  plan_workspace();
  own.memory.check(own.name());
  int64_t slots = kept_slots(prog, micro_batches);
  const int64_t batch_bytes = own.is_hosted ? 0 : own.inputs.host_bytes();
  check_memory(other_bytes + batch_bytes + transfer_bytes + slots * kept_bytes,
               ranks.ranks_on_host());
  own.memory.allocate();
  if (!own.is_hosted)
    own.inputs.allocate(staging);
  own.transfer.allocate(transfer_bytes);
  own.kept.allocate(slots * kept_bytes);
  own.kept_types.assign(static_cast<size_t>(slots), data_type::f64);
  set_product_workspace(workspace);
  set_scratch(workspace);
  places.constants = constants;
  if (own.gradients)
    own.gradients->place(places[arena_kind::gradients], accumulators, received, sums);
  if (own.shards) {
    own.shards->place(places[arena_kind::activations], accumulators, received, sums);
    places.base[static_cast<int>(arena_kind::gradients)] = gathered_gradients();
  }
  if (own.stage)
    own.stage->place(stage_place);
  set_zero(use);
}

// At the end of the activations arena, where plan-memory has made room.
char *device::implementation::gathered_gradients() const {
  const int64_t offset = prog.arena_bytes[static_cast<int>(arena_kind::activations)] -
                         prog.arena_bytes[static_cast<int>(arena_kind::gradients)];
  return places[arena_kind::activations] + offset / arena_alignment * arena_alignment;
}

// Of a step in stages, what the functions of this rank's chunks need.
int64_t device::implementation::arena_bytes(int kind) const {
  if (!gpu->stage || kind != static_cast<int>(arena_kind::activations))
    return prog.arena_bytes[kind];
  return prog.stages->activation_bytes(stage_of(prog, ranks));
}

// Finds out which matrix products there are and how much memory functions need.
void device::implementation::plan_work(memory_use use) {
  plan_products(product_settings_of(options, gpu->is_hosted), ranks, [&](const arenas &nowhere) {
    if (use == memory_use::training) {
      if (prog.stages) { // of all stages: the ranks choose algorithms together
        for (const chunk_program &chunk : prog.stages->chunks)
          for (auto function : {chunk.forward, chunk.backward, chunk.weight_gradient})
            if (function)
              function(nowhere);
      } else {
        prog.forward_backward(nowhere);
      }
      prog.update(nowhere);
    }
    // A run that never evaluates, nor writes text, needs no algorithms for it; who calls a library
    // may at any time.
    if (use == memory_use::forward || gpu->is_hosted || options.evaluate_every.count > 0 ||
        options.sample_every > 0)
      prog.evaluate(nowhere);
  });
}

void device::implementation::plan_memory(memory_use use) {
  device_memory &memory = gpu->memory;
  for (int kind = 0; kind < arena_count; ++kind) {
    bool only_training = kind == static_cast<int>(arena_kind::gradients) ||
                         kind == static_cast<int>(arena_kind::optimizer_state);
    const bool in_parts =
        kind == static_cast<int>(arena_kind::optimizer_state) && !shares.is_whole();
    if (kind == static_cast<int>(arena_kind::gradients) && prog.shards_gradients)
      continue;
    if (in_parts)
      memory.plan("arenas", arena_bytes(kind), shares.state_bytes(prog), &places.base[kind]);
    else if (use == memory_use::training || !only_training)
      memory.plan("arenas", arena_bytes(kind), &places.base[kind]);
  }
  memory.plan("constants", prog.constant_bytes, &constants);
  if (!gpu->is_hosted)
    memory.plan("batch staging", gpu->inputs.device_bytes(), &staging);
  if (gpu->gradients) {
    if (prog.stages)
      memory.plan("accumulators", gpu->gradients->accumulator_addresses(),
                  gpu->gradients->accumulator_pieces(), &accumulators);
    else
      memory.plan("accumulators", gpu->gradients->accumulator_bytes(), &accumulators);
    memory.plan("exchange of gradients", gpu->gradients->exchange_bytes(), &received);
    memory.plan("order of sums", gpu->gradients->table_bytes(), &sums);
  }
  if (gpu->shards) {
    if (ranks.size() > 1)
      memory.plan("accumulators", gpu->shards->accumulator_addresses(),
                  gpu->shards->accumulator_pieces(), &accumulators);
    else
      memory.plan("accumulators", gpu->shards->accumulator_addresses(), &accumulators);
    memory.plan("exchange of gradients", gpu->shards->exchange_bytes(), &received);
    memory.plan("order of sums", gpu->shards->table_bytes(), &sums);
  }
  if (gpu->stage)
    memory.plan("micro-batches on their way", gpu->stage->device_bytes(), &stage_place);
}

// Padding of the flat arenas takes part in the update, and inputs need not all be
// written. Everything else is written before it is read.
void device::implementation::set_zero(memory_use use) {
  auto zero = [&](char *address, int64_t bytes) {
    if (bytes > 0)
      check_cuda(cudaMemsetAsync(address, 0, static_cast<size_t>(bytes), compute_stream()),
                 "zeroing of memory");
  };
  zero(places[arena_kind::parameters], prog.arena_bytes[static_cast<int>(arena_kind::parameters)]);
  if (use == memory_use::training) {
    auto zero_arena = [&](arena_kind kind, const std::vector<element_range> &pieces) {
      for (const element_range &piece : pieces)
        zero(places[kind] + piece.begin, piece.end - piece.begin);
    };
    auto whole = [&](arena_kind kind) {
      return std::vector<element_range>{{0, prog.arena_bytes[static_cast<int>(kind)]}};
    };
    if (!prog.shards_gradients)
      zero_arena(arena_kind::gradients, whole(arena_kind::gradients));
    zero_arena(arena_kind::optimizer_state,
               shares.is_whole() ? whole(arena_kind::optimizer_state) : shares.state_bytes(prog));
  }
  for (const input_place &place : prog.inputs) {
    const tensor_place &input = place.tensor;
    zero(places[input.arena] + input.offset, byte_count(input));
  }
  if (prog.constant_bytes > 0)
    check_cuda(cudaMemcpyAsync(constants, prog.constants, static_cast<size_t>(prog.constant_bytes),
                               cudaMemcpyHostToDevice, compute_stream()),
               "copy of the constants");
  check_cuda(cudaStreamSynchronize(compute_stream()), "zeroing of memory");
}

const char *device::read(const char *address, int64_t bytes) {
  if (!own_->gpu)
    return address;
  char *target = own_->gpu->transfer.data();
  check_cuda(cudaMemcpyAsync(target, address, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost,
                             compute_stream()),
             "copy from the device");
  check_cuda(cudaStreamSynchronize(compute_stream()), "copy from the device");
  return target;
}

void device::write(char *address, int64_t bytes, const std::function<void(char *)> &fill) {
  if (!own_->gpu) {
    fill(address);
    return;
  }
  own_->copies_are_old |= is_parameter(own_->prog, own_->places, address);
  bool is_filled = false;
  char *source = own_->gpu->transfer.data();
  for (int64_t done = 0, piece = bytes; done < bytes; done += piece, piece = bytes - done) {
    const update_share *share = own_->share_at(address + done, piece);
    if (share && !own_->shares.is_own(*share))
      continue;
    if (!is_filled)
      fill(source);
    is_filled = true;
    check_cuda(cudaMemcpyAsync(address + done, source + done, static_cast<size_t>(piece),
                               cudaMemcpyHostToDevice, compute_stream()),
               "copy to the device");
  }
  check_cuda(cudaStreamSynchronize(compute_stream()), "copy to the device");
}

const update_share *device::implementation::share_at(const char *address, int64_t &bytes) const {
  const char *states = places[arena_kind::optimizer_state];
  const int64_t offset = shares.is_whole() ? -1 : address - states;
  if (offset < 0 || offset >= std::ssize(prog.state_names) * prog.optimizer_slot_bytes)
    return nullptr;
  const int64_t size = bytes_of(prog.parameter_type);
  const int64_t element = offset % prog.optimizer_slot_bytes / size;
  const update_share *share = shares.of(element);
  if (share)
    bytes = std::min(bytes, (share->range.end - element) * size);
  return share;
}

int device::holder(const char *address, int64_t &bytes) const {
  const update_share *share = own_->gpu ? own_->share_at(address, bytes) : nullptr;
  return share ? own_->shares.rank_of(*share) : every_rank;
}

// ---- batches

char *device::batch_place(const tensor_place &input) { return own_->gpu->inputs.place(input); }

void device::send_batch() { own_->gpu->inputs.send(own_->gpu->streams); }

void device::submit_batch() { own_->gpu->inputs.use(own_->gpu->streams, own_->places); }

bool device::overlaps_batches() const { return true; }

// ---- work

void device::note_parameters_written() { own_->copies_are_old = true; }

void device::round_parameters() {
  if (own_->prog.round_parameters && own_->copies_are_old)
    run(entry::round_parameters);
  own_->copies_are_old = false;
}

// The last micro-batch's gradients are exchanged with what was added before; of those that no rank
// keeps, every one's.
bool device::implementation::begins_exchange(entry which) const {
  return gpu->exchange && which == entry::forward_backward &&
         (gpu->shards || micro_batch == micro_batches - 1);
}

void device::run(entry which) {
  own_->queue_scalars();
  const bool exchanges = own_->begins_exchange(which);
  own_->places.exchange = exchanges ? own_->gpu->exchange.get() : nullptr;
  const auto work = [this, which] { call(own_->prog, which, places()); };
  if (step_clock *clock = own_->places.clock) {
    clock->uses(own_->places);
    work();
  } else {
    own_->gpu->recorded.run(exchanges ? overlapped_entry : static_cast<size_t>(which),
                            std::ref(work)); // a reference: nothing is allocated
  }
  if (exchanges && own_->gpu->shards)
    own_->gpu->exchange->finish();
  own_->share_updates(which);
}

void device::implementation::share_updates(entry which) {
  if (which != entry::update || shares.is_whole())
    return;
  if (gpu->shards)
    gpu->shards->share_updated(places[arena_kind::parameters], shares);
  else
    gpu->gradients->share_updated(places[arena_kind::parameters], shares);
  copies_are_old = true; // of what others have updated: stages too, which share tied parameters
}

void device::implementation::run_chunk(const stage_action &action) {
  const chunk_program &chunk = prog.stages->chunks[action.chunk];
  arenas memory = places;
  memory.base[static_cast<int>(arena_kind::stash)] = gpu->stage->slot(action.chunk, action.slot);
  const auto function = chunk.function_of(action.kind);
  const auto work = [&] { function(memory); };
  if (places.clock) {
    places.clock->uses(memory);
    return work();
  }
  gpu->recorded.run(first_of_chunks + number_of_piece(prog, action), std::ref(work));
}

void device::run(const stage_action &action) {
  computing_device &gpu = *own_->gpu;
  own_->queue_scalars();
  if (action.kind == stage_action_kind::norm) {
    gpu.gradients->share_totals(*own_->prog.stages);
    return gpu.stage->forget_faults();
  }
  const chunk_program &chunk = own_->prog.stages->chunks[action.chunk];
  if (action.kind == stage_action_kind::reduce)
    return gpu.gradients->exchange({chunk.gradients, chunk.weight_gradients});
  if (action.kind == stage_action_kind::forward)
    return own_->run_chunk(action);
  // The faults that other stages know of come with messages.
  gpu.stage->tell_fault(action.micro_batch,
                        own_->places[arena_kind::workspace] + own_->prog.batch_fault_offset);
  own_->run_chunk(action);
  const bool second = action.kind == stage_action_kind::weight_gradient;
  gpu.gradients->add(action.micro_batch, second ? chunk.weight_gradients : chunk.gradients);
}

// What came with the message stays on the device.
bool device::move(const stage_action &message, bool fault) {
  own_->gpu->stage->move(message, own_->places);
  return fault;
}

void device::keep_inputs(const stage_action &action) {
  const chunk_program &chunk = own_->prog.stages->chunks[action.chunk];
  own_->queue_scalars();
  own_->gpu->stage->note_fault(action.micro_batch,
                               own_->places[arena_kind::workspace] + own_->prog.batch_fault_offset);
  for (const chunk_input &kept : chunk.inputs) {
    const tensor_place &input = own_->prog.inputs[kept.number].tensor;
    check_cuda(cudaMemcpyAsync(own_->gpu->stage->slot(action.chunk, action.slot) + kept.offset,
                               own_->places[input.arena] + input.offset,
                               static_cast<size_t>(byte_count(input)), cudaMemcpyDeviceToDevice,
                               compute_stream()),
               "copy of an input");
  }
}

void device::expect_update(bool) {}

void device::sum_gradients(int64_t micro_batch) {
  const bool is_last = micro_batch == own_->micro_batches - 1;
  own_->micro_batch = is_last ? 0 : micro_batch + 1;
  if (own_->gpu->shards) {
    if (is_last)
      own_->gpu->shards->gather(own_->places[arena_kind::gradients]);
  } else if (is_last && own_->gpu->exchange)
    own_->gpu->exchange->finish();
  else
    own_->gpu->gradients->queue(micro_batch);
}

void device::observe(step_clock *clock) { own_->places.clock = clock; }
double device::seconds_waited() const { return 0; }
exchange_times device::last_exchange() const { return {}; }

void device::set_bits(int64_t offset, uint64_t bits) {
  scalar_list &list = own_->gpu->scalars;
  int place = 0; // one for each offset: all of the list are written at once
  while (place < list.count && list.offsets[place] != offset)
    ++place;
  if (place == scalar_list::capacity) {
    own_->queue_scalars();
    place = 0;
  }
  list.offsets[place] = offset;
  list.values[place] = bits;
  list.count = std::max(list.count, place + 1);
}

void device::implementation::queue_scalars() {
  if (gpu->scalars.count > 0)
    trainc::queue_scalars(gpu->scalars, places[arena_kind::workspace]);
  gpu->scalars.count = 0;
}

void device::keep(const tensor_place &scalar, int slot, int stash_slot) {
  const char *base = scalar.arena == arena_kind::stash
                         ? own_->gpu->stage->slot(own_->prog.stages->loss_chunk, stash_slot)
                         : own_->places[scalar.arena];
  own_->gpu->kept_types[static_cast<size_t>(slot)] = scalar.type;
  check_cuda(cudaMemcpyAsync(own_->gpu->kept.data() + slot * kept_bytes, base + scalar.offset,
                             static_cast<size_t>(bytes_of(scalar.type)), cudaMemcpyDeviceToHost,
                             compute_stream()),
             "copy of a scalar");
}

double device::kept(int slot) const {
  return number_at(own_->gpu->kept_types[static_cast<size_t>(slot)],
                   own_->gpu->kept.data() + slot * kept_bytes);
}

void device::finish() {
  const bool alone = own_->ranks.size() == 1; // then there is nobody to wait for in vain
  while (!alone && own_->gpu->is_busy()) {
    own_->gpu->check();
    std::this_thread::yield();
  }
  own_->gpu->check();
  check_cuda(cudaStreamSynchronize(compute_stream()), "a step");
}

void device::mark(size_t number) { own_->gpu->marks.record(number); }

double device::marked(size_t number) const { return own_->gpu->marks.seconds(number); }

double device::copy_rate() {
  constexpr auto kind = static_cast<int>(arena_kind::activations);
  return measure_copy_rate(own_->places.base[kind], own_->arena_bytes(kind));
}

double device::product_rate() { return 0; }
double device::product_rate(char *, int64_t) { return 0; }

device_bytes device::memory_in_use() const {
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess)
    return {}; // an observer does not end a run
  return {static_cast<int64_t>(total - free), static_cast<int64_t>(free)};
}

} // namespace trainc
