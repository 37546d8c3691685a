// SPDX-License-Identifier: Apache-2.0
//
// A rank's file: a page, then for each boundary at which it receives the mailbox: counters, then
// its places. Both sides know where from the tables of the program.
#include "runtime/cpu/stage_memory.h"

#include "runtime/cpu/shared_wait.h"
#include "runtime/failure.h"
#include "runtime/shared_memory.h"

#include <cstring>
#include <sys/mman.h>

namespace trainc {

// Messages are counted from the start of the run; one is in place `action.place`.
struct stage_memory::mailbox {
  std::atomic<uint32_t> sent;
  alignas(64) std::atomic<uint32_t> taken;
};

// One kind of message: its tensors and the mailbox.
struct stage_memory::letter {
  const crossing_tensor *tensors;
  int64_t count;
  int places;
  mailbox *box;
  char *first; // place: a byte for the fault in 64, then the tensors
  int64_t place_bytes;
};

namespace {

constexpr int64_t box_bytes = 2 * line_bytes;

int64_t place_bytes(const crossing_tensor *tensors, int64_t count) {
  int64_t bytes = line_bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes += round_up(tensors[i].bytes, line_bytes);
  return bytes;
}

// Calls found(boundary, is of gradients, offset in the file) for what a stage receives.
template <typename Found>
int64_t each_mailbox(const pipeline &pipeline, int stage, const Found &found) {
  int64_t offset = page_bytes;
  for (int64_t i = 0; i < pipeline.boundary_count; ++i) {
    const chunk_boundary &boundary = pipeline.boundaries[i];
    if (pipeline.stage_of(boundary.to) == stage) {
      found(i, false, offset);
      offset += box_bytes + boundary.activation_places *
                                place_bytes(boundary.activations, boundary.activation_count);
    }
    if (pipeline.stage_of(boundary.from) == stage) {
      found(i, true, offset);
      offset += box_bytes +
                boundary.gradient_places * place_bytes(boundary.gradients, boundary.gradient_count);
    }
  }
  return offset;
}

int64_t file_bytes(const pipeline &pipeline, int stage) {
  return each_mailbox(pipeline, stage, [](int64_t, bool, int64_t) {});
}

} // namespace

int64_t stage_memory::bytes_of(const program &program, int stage) {
  int64_t bytes = file_bytes(*program.stages, stage);
  program.stages->for_each_chunk(
      stage, [&](const chunk_program &chunk, int) { bytes += chunk.slots * chunk.slot_bytes; });
  return bytes;
}

stage_memory::stage_memory(communicator &ranks, arena_set &arenas, const program &program)
    : pipeline_(*program.stages), layout_(program, ranks.rank(), ranks.size()),
      stashes_(static_cast<size_t>(pipeline_.chunk_count)) {
  if (ranks.ranks_on_host() == ranks.size())
    files_ = share_with_host("trainc-messages", file_bytes(pipeline_, layout_.stage));
  ranks.together([&] {
    if (files_.empty())
      throw failure(exit_machine,
                    "the stages of a pipeline do not share memory: their ranks run on several "
                    "hosts or in several containers\n  try: all of them on one host");
    pipeline_.for_each_chunk(layout_.stage, [&](const chunk_program &chunk, int number) {
      stashes_[static_cast<size_t>(number)] = arenas.allocate(chunk.slots * chunk.slot_bytes);
    });
  });
}

stage_memory::~stage_memory() {
  for (size_t rank = 0; rank < files_.size(); ++rank)
    munmap(files_[rank],
           static_cast<size_t>(file_bytes(pipeline_, static_cast<int>(rank) % layout_.stages)));
}

stage_memory::letter stage_memory::letter_of(const stage_action &message) const {
  const chunk_boundary &boundary = pipeline_.boundaries[message.boundary];
  const bool is_gradient = is_of_gradients(message.kind);
  const int receiver = pipeline_.stage_of(is_gradient ? boundary.from : boundary.to);
  char *file = files_[static_cast<size_t>(layout_.rank_of(layout_.replica, receiver))];
  letter found = {is_gradient ? boundary.gradients : boundary.activations,
                  is_gradient ? boundary.gradient_count : boundary.activation_count,
                  is_gradient ? boundary.gradient_places : boundary.activation_places,
                  nullptr,
                  nullptr,
                  0};
  found.place_bytes = place_bytes(found.tensors, found.count);
  each_mailbox(pipeline_, receiver, [&](int64_t number, bool of_gradients, int64_t offset) {
    if (number != message.boundary || of_gradients != is_gradient)
      return;
    found.box = reinterpret_cast<mailbox *>(file + offset);
    found.first = file + offset + box_bytes;
  });
  return found;
}

bool stage_memory::move(const stage_action &message, const arenas &places, bool fault) {
  const letter letter = letter_of(message);
  char *memory = is_of_gradients(message.kind) ? places[arena_kind::activations]
                                               : slot(message.chunk, message.slot);
  if (sends(message.kind)) {
    send(letter, memory, message.place, fault);
    return fault;
  }
  return receive(letter, memory, message.place);
}

void stage_memory::send(const letter &to, const char *made, int place, bool fault) {
  const uint32_t sent = to.box->sent.load();
  for (;;) {
    const uint32_t taken = to.box->taken.load();
    if (sent - taken < static_cast<uint32_t>(to.places))
      break;
    wait_for_change(to.box->taken, taken);
  }
  char *target = to.first + place * to.place_bytes;
  *target = fault ? 1 : 0;
  target += line_bytes;
  for (int64_t i = 0; i < to.count; ++i) {
    memcpy(target, made + to.tensors[i].from, static_cast<size_t>(to.tensors[i].bytes));
    target += round_up(to.tensors[i].bytes, line_bytes);
  }
  change(to.box->sent);
}

bool stage_memory::receive(const letter &from, char *read, int place) {
  const uint32_t taken = from.box->taken.load();
  while (from.box->sent.load() == taken)
    wait_for_change(from.box->sent, taken);
  const char *source = from.first + place * from.place_bytes;
  const bool fault = *source != 0;
  source += line_bytes;
  for (int64_t i = 0; i < from.count; ++i) {
    memcpy(read + from.tensors[i].to, source, static_cast<size_t>(from.tensors[i].bytes));
    source += round_up(from.tensors[i].bytes, line_bytes);
  }
  change(from.box->taken);
  return fault;
}

} // namespace trainc
