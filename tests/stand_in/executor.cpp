// SPDX-License-Identifier: Apache-2.0
#include "executor.h"
#include "memory.h"
#include "operations.h"
#include "report.h"
#include "settings.h"
#include "shadow.h"
#include "shared_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/context/detail/fcontext.hpp>
#include <memory>
#include <numeric>
#include <sys/mman.h>

// Constants for kernels, variables here: see device_functions.h.
namespace trainc::stand_in {
uint3 thread_index asm("threadIdx");
uint3 block_index asm("blockIdx");
dim3 block_size asm("blockDim");
dim3 grid_size asm("gridDim");

launch_state launch;
bool in_kernel = false;
bool checking = false;
uintptr_t stacks_begin = 0;
size_t stacks_bytes = 0;

namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr unsigned most_threads = 1024, warp_size = 32;
constexpr size_t stack_bytes = 128 << 10, guard_bytes = 4096;

struct fiber {
  fcontext_t context = nullptr;
};

enum class state : uint8_t { not_started, ready, at_barrier, in_warp, finished };

struct warp {
  unsigned arrived = 0; // lanes that wait
  unsigned mask = 0;
  unsigned finished = 0;
  warp_operation operation = warp_operation::sync;
  place where = {};
  uint64_t last_sync = 0;
  std::array<uint64_t, warp_size> values = {};
  std::array<int, warp_size> operands = {};
  int width = warp_size;
};

// All that is known of the block that runs.
struct block {
  unsigned threads = 0;
  unsigned finished = 0;
  unsigned waiting = 0; // at the barrier
  place barrier = {};
  int barrier_thread = -1; // the first that waits
  std::array<state, most_threads> states = {};
  std::array<fiber *, most_threads> fibers = {}; // of threads that wait
  std::array<uint64_t, most_threads / 64> runnable = {};
  unsigned runnable_count = 0;
  std::array<warp, most_threads / warp_size> warps = {};
};

block running;
unsigned current_thread = 0;
fiber main_fiber;
fiber *current_fiber = &main_fiber;
std::vector<std::unique_ptr<fiber>> all_fibers;
std::vector<fiber *> idle_fibers;
uint64_t random_state = 0;
thread_order order = thread_order::forward; // of the running launch

// Clock at which each block of the launch started, in the order they ran.
struct started_block {
  uint64_t clock;
  uint64_t index;
};
std::vector<started_block> started_blocks;

uint64_t next_random() { // splitmix64
  uint64_t z = random_state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// ---- fibers

void came_from(transfer_t transfer) {
  static_cast<fiber *>(transfer.data)->context = transfer.fctx;
}

void change_to(fiber *next) {
  fiber *self = current_fiber;
  current_fiber = next;
  came_from(jump_fcontext(next->context, self));
}

void run_threads(transfer_t transfer);

fiber *free_fiber() {
  if (!idle_fibers.empty()) {
    fiber *result = idle_fibers.back();
    idle_fibers.pop_back();
    return result;
  }
  const size_t index = all_fibers.size();
  char *low = reinterpret_cast<char *>(stacks_begin) + index * stack_bytes;
  mprotect(low, guard_bytes, PROT_NONE);
  all_fibers.push_back(std::make_unique<fiber>());
  all_fibers.back()->context =
      make_fcontext(low + stack_bytes, stack_bytes - guard_bytes, run_threads);
  return all_fibers.back().get();
}

void map_stacks() {
  if (stacks_bytes != 0)
    return;
  stacks_bytes = (most_threads + 1) * stack_bytes;
  void *address = mmap(nullptr, stacks_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    fail("start", "cannot reserve the stacks of a block's threads");
  stacks_begin = reinterpret_cast<uintptr_t>(address);
}

// ---- turns

void make_runnable(unsigned thread) {
  running.runnable[thread / 64] |= uint64_t{1} << thread % 64;
  ++running.runnable_count;
}

unsigned lowest_runnable() {
  for (unsigned i = 0;; ++i)
    if (running.runnable[i] != 0)
      return i * 64 + std::countr_zero(running.runnable[i]);
}
unsigned highest_runnable() {
  for (unsigned i = running.runnable.size(); i-- > 0;)
    if (running.runnable[i] != 0)
      return i * 64 + 63 - std::countl_zero(running.runnable[i]);
  return 0;
}
unsigned random_runnable() {
  unsigned skip = next_random() % running.runnable_count;
  for (unsigned i = 0;; ++i) {
    const unsigned here = std::popcount(running.runnable[i]);
    if (skip >= here) {
      skip -= here;
      continue;
    }
    uint64_t bits = running.runnable[i];
    for (; skip > 0; --skip)
      bits &= bits - 1;
    return i * 64 + std::countr_zero(bits);
  }
}

// The thread whose turn is next, -1 where all wait or have finished.
int next_thread() {
  if (running.runnable_count == 0)
    return -1;
  switch (order) {
  case thread_order::forward:
    return lowest_runnable();
  case thread_order::reverse:
    return highest_runnable();
  case thread_order::random:
    break;
  }
  return random_runnable();
}

void take(unsigned thread) {
  running.runnable[thread / 64] &= ~(uint64_t{1} << thread % 64);
  --running.runnable_count;
}

void resume_as(unsigned thread) {
  current_thread = thread;
  thread_index.x = thread;
  set_thread(thread);
  current.warp_sync = running.warps[thread / warp_size].last_sync;
}

void thread_finished(unsigned thread);

// What every fiber runs: threads, until none is left that has not started.
void run_threads(transfer_t transfer) {
  came_from(transfer);
  for (;;) {
    const int next = next_thread();
    if (next < 0) {
      idle_fibers.push_back(current_fiber);
      change_to(&main_fiber);
      continue;
    }
    take(next);
    if (running.states[next] == state::ready) {
      idle_fibers.push_back(current_fiber);
      change_to(running.fibers[next]);
      continue;
    }
    resume_as(next);
    checking = true;
    launch.call->run_thread(launch.call->arguments.get());
    checking = false;
    thread_finished(next);
  }
}

// The current thread cannot go on: others get their turn until it can.
void wait_as(state why) {
  const unsigned self = current_thread;
  if (why != state::ready)
    running.states[self] = why;
  running.fibers[self] = current_fiber;
  const int next = next_thread();
  if (next < 0)
    change_to(&main_fiber);
  else if (static_cast<unsigned>(next) == self)
    take(next);
  else if (running.states[next] == state::ready) {
    take(next);
    change_to(running.fibers[next]);
  } else
    change_to(free_fiber());
  resume_as(self);
}

void release(unsigned thread) {
  running.states[thread] = state::ready;
  make_runnable(thread);
}

// ---- what can be wrong with a barrier

std::string at(place where) {
  const std::string file = where.file;
  return "at " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line);
}

const char *name_of(warp_operation operation) {
  switch (operation) {
  case warp_operation::sync:
    return "__syncwarp";
  case warp_operation::shuffle_xor:
    return "__shfl_xor_sync";
  case warp_operation::shuffle_down:
    return "__shfl_down_sync";
  case warp_operation::shuffle_up:
    return "__shfl_up_sync";
  case warp_operation::shuffle_index:
    return "__shfl_sync";
  case warp_operation::ballot:
    break;
  }
  return "a vote";
}

unsigned some_finished() {
  unsigned thread = 0;
  while (running.states[thread] != state::finished)
    ++thread;
  return thread;
}

[[noreturn]] void barrier_without(unsigned waiting, unsigned gone) {
  fail(running_thread(), "barrier not reached by all threads: thread " + std::to_string(waiting) +
                             " waits in __syncthreads " + at(running.barrier) + ", thread " +
                             std::to_string(gone) + " has returned from the kernel");
}

[[noreturn]] void exchange_without(const warp &w, unsigned gone) {
  fail(running_thread(), std::string(name_of(w.operation)) + " " + at(w.where) +
                             " needs all lanes of its mask, thread " + std::to_string(gone) +
                             " has returned from the kernel");
}

// All threads that are left wait, and not for the same thing.
[[noreturn]] void deadlock() {
  std::string waiting;
  for (unsigned thread = 0; thread < running.threads; ++thread) {
    if (running.states[thread] != state::in_warp)
      continue;
    const warp &w = running.warps[thread / warp_size];
    const unsigned lane = std::countr_zero(w.mask & ~w.arrived);
    waiting = "thread " + std::to_string(thread) + " waits in " + name_of(w.operation) + " " +
              at(w.where) + " for lane " + std::to_string(lane) + " of its warp";
    current_thread = thread;
    break;
  }
  if (running.waiting > 0)
    waiting += (waiting.empty() ? "thread " : ", thread ") +
               std::to_string(running.barrier_thread) + " waits in __syncthreads " +
               at(running.barrier);
  fail(running_thread(), "threads wait for each other for ever: " + waiting);
}

void thread_finished(unsigned thread) {
  running.states[thread] = state::finished;
  ++running.finished;
  if (running.waiting > 0)
    barrier_without(running.barrier_thread, thread);
  warp &w = running.warps[thread / warp_size];
  const unsigned lane = 1u << thread % warp_size;
  w.finished |= lane;
  if (w.arrived != 0 && (w.mask & lane) != 0)
    exchange_without(w, thread);
}

// ---- warps

uint64_t exchanged(const warp &w, unsigned lane) {
  const int width = w.width, operand = w.operands[lane];
  const int segment = static_cast<int>(lane) / width * width, place = lane % width;
  int source = place;
  switch (w.operation) {
  case warp_operation::sync:
    return 0;
  case warp_operation::ballot: {
    uint64_t votes = 0;
    for (unsigned i = 0; i < warp_size; ++i)
      votes |= (w.mask >> i & 1) != 0 && w.values[i] != 0 ? uint64_t{1} << i : 0;
    return votes;
  }
  case warp_operation::shuffle_xor:
    source = static_cast<int>(lane) ^ operand;
    break;
  case warp_operation::shuffle_down:
    source = segment + place + operand;
    break;
  case warp_operation::shuffle_up:
    source = segment + place - operand;
    break;
  case warp_operation::shuffle_index:
    source = segment + (operand & (width - 1));
    break;
  }
  const bool outside = w.operation == warp_operation::shuffle_xor
                           ? source >= segment + width
                           : source < segment || source >= segment + width;
  if (outside)
    source = lane;
  if ((w.mask >> source & 1) == 0)
    fail(running_thread(), std::string(name_of(w.operation)) + " " + at(w.where) + " reads lane " +
                               std::to_string(source) + ", which is not in its mask");
  return w.values[source];
}

void join_warp(warp &w, unsigned lane, warp_operation operation, unsigned mask, int width,
               place where) {
  if ((mask >> lane & 1) == 0)
    fail(running_thread(), std::string(name_of(operation)) + " " + at(where) +
                               " is called by a lane that is not in its mask");
  if ((w.finished & mask) != 0 && operation != warp_operation::sync) {
    w.operation = operation, w.where = where;
    exchange_without(w,
                     current_thread / warp_size * warp_size + std::countr_zero(w.finished & mask));
  }
  if (w.arrived == 0) {
    w.operation = operation, w.mask = mask, w.width = width, w.where = where;
    return;
  }
  if (w.operation != operation || w.mask != mask || w.width != width)
    fail(running_thread(), std::string("lanes of one warp diverge: this one calls ") +
                               name_of(operation) + " " + at(where) + ", others wait in " +
                               name_of(w.operation) + " " + at(w.where));
}

} // namespace

namespace {

// The code of a barrier, between two stretches of the kernel's.
struct own_code {
  own_code() { checking = false; }
  ~own_code() { checking = true; }
};

} // namespace

void block_barrier(place where) {
  const own_code here;
  const unsigned self = current_thread;
  if (running.waiting == 0) {
    running.barrier = where;
    running.barrier_thread = self;
  }
  if (running.finished > 0)
    barrier_without(self, some_finished());
  if (running.barrier.line != where.line)
    fail(running_thread(), "barrier not reached by all threads: thread " +
                               std::to_string(running.barrier_thread) + " waits in __syncthreads " +
                               at(running.barrier) + ", thread " + std::to_string(self) +
                               " in another one " + at(where));
  if (++running.waiting < running.threads) {
    wait_as(state::at_barrier);
    return;
  }
  running.waiting = 0;
  tick();
  current.barrier = current.clock;
  for (unsigned thread = 0; thread < running.threads; ++thread)
    release(thread);
  wait_as(state::ready);
}

uint64_t warp_exchange(warp_operation operation, unsigned mask, uint64_t value, int operand,
                       int width, place where) {
  const own_code here;
  const unsigned lane = current_thread % warp_size;
  warp &w = running.warps[current_thread / warp_size];
  join_warp(w, lane, operation, mask, width, where);
  w.values[lane] = value;
  w.operands[lane] = operand;
  w.arrived |= 1u << lane;
  if ((w.arrived | w.finished) != (mask | w.finished)) {
    wait_as(state::in_warp);
    return w.values[lane]; // the last lane put the result there
  }
  std::array<uint64_t, warp_size> results = {};
  for (unsigned i = 0; i < warp_size; ++i)
    if ((w.arrived >> i & 1) != 0)
      results[i] = exchanged(w, i);
  w.values = results;
  if (operation == warp_operation::sync) {
    tick();
    w.last_sync = current.clock;
  }
  for (unsigned i = 0; i < warp_size; ++i)
    if ((w.arrived >> i & 1) != 0)
      release(current_thread - lane + i);
  w.arrived = 0;
  wait_as(state::ready);
  return w.values[lane];
}

// ---- blocks

namespace {

void run_block(uint64_t index, unsigned threads) {
  tick();
  current.block_start = current.barrier = current.clock;
  started_blocks.push_back({current.clock, index});
  block_index = {static_cast<unsigned>(index % grid_size.x),
                 static_cast<unsigned>(index / grid_size.x), 0};
  running.threads = threads;
  running.finished = running.waiting = 0;
  running.runnable = {};
  running.runnable_count = 0;
  for (unsigned w = 0; w * warp_size < threads; ++w) {
    running.warps[w].arrived = running.warps[w].finished = 0;
    running.warps[w].last_sync = current.clock;
  }
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.states[thread] = state::not_started;
    make_runnable(thread);
  }
  in_kernel = true;
  change_to(free_fiber());
  in_kernel = false;
  if (running.finished < threads)
    deadlock();
}

// The operation's blocks in the order that the options ask for.
uint64_t block_at(uint64_t turn, uint64_t blocks, const std::vector<uint64_t> &shuffled) {
  switch (order) {
  case thread_order::forward:
    return turn;
  case thread_order::reverse:
    return blocks - 1 - turn;
  case thread_order::random:
    break;
  }
  return shuffled[turn];
}

void check_extents(const kernel_call &call) {
  for (const argument_extent &extent : call.extents)
    if (extent.bytes > 0 && !is_allocated(extent.data, extent.bytes))
      fail("kernel " + function_name(call.function),
           "argument " + std::to_string(extent.argument) + " (" +
               std::to_string(extent.bytes / extent.element_bytes) +
               " elements) reaches outside device memory: it starts at " +
               (is_device(extent.data) ? describe_device(extent.data)
                                       : "an address that is not device memory"));
}

} // namespace

void run_kernel(const kernel_call &call, dim3 grid, dim3 block) {
  map_stacks();
  enter_shared_memory(call.function);
  check_extents(call);
  launch.call = &call;
  launch.arguments = reinterpret_cast<uintptr_t>(call.arguments.get());
  launch.argument_bytes = call.argument_bytes;
  launch.any_read = launch.any_write = false;
  for (const argument_extent &extent : call.extents) {
    launch.any_read |= extent.bytes < 0;
    launch.any_write |= extent.bytes < 0 && extent.writable;
  }
  grid_size = grid;
  block_size = block;
  started_blocks.clear();
  order = options().threads;
  const uint64_t blocks = uint64_t{grid.x} * grid.y;
  std::vector<uint64_t> shuffled;
  if (order == thread_order::random) {
    random_state = options().seed * 0x2545f4914f6cdd1d + current.clock;
    shuffled.resize(blocks);
    std::iota(shuffled.begin(), shuffled.end(), 0);
    for (uint64_t i = blocks; i > 1; --i)
      std::swap(shuffled[i - 1], shuffled[next_random() % i]);
  }
  for (uint64_t turn = 0; turn < blocks; ++turn)
    run_block(block_at(turn, blocks, shuffled), block.x);
  set_thread(0);
  launch.call = nullptr;
}

namespace {
std::string block_name(uint64_t index) {
  std::string name = "block " + std::to_string(index % grid_size.x);
  if (grid_size.y > 1)
    name += "," + std::to_string(index / grid_size.x);
  return name;
}
} // namespace

std::string running_thread() {
  const uint64_t index = block_index.x + uint64_t{block_index.y} * grid_size.x;
  return "kernel " + function_name(launch.call->function) + ", " + block_name(index) + ", thread " +
         std::to_string(current_thread);
}

std::string thread_at(uint64_t clock, unsigned thread) {
  const auto next =
      std::upper_bound(started_blocks.begin(), started_blocks.end(), clock,
                       [](uint64_t value, const started_block &one) { return value < one.clock; });
  const uint64_t index = std::prev(next)->index;
  const bool same = &*std::prev(next) == &started_blocks.back();
  return "thread " + std::to_string(thread) + " of " +
         (same ? "the same block" : block_name(index));
}

} // namespace trainc::stand_in
