// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/stage_memory.h"

#include <algorithm>
#include <cstring>

namespace trainc {

namespace {

// A rank that waits in memory leaves its messages to a thread, so there must be one.
bool uses_memory(const communicator &ranks, communication_kind kind) {
  return kind != communication_kind::messages &&
         (ranks.threads_may_send() || ranks.ranks_on_host() == ranks.size());
}

} // namespace

stage_memory::stage_memory(communicator &ranks, arena_set &arenas, const program &program,
                           communication_kind kind)
    : pipeline_(*program.stages), layout_(program, ranks.rank(), ranks.size()),
      stashes_(pipeline_.chunks.size()),
      shared_(ranks, pipeline_, layout_, uses_memory(ranks, kind)) {
  bool lacks = false;
  for (int64_t number = 0; number < kind_count(pipeline_); ++number)
    lacks |= !shared_.carries(number);
  std::vector<char> lacking(static_cast<size_t>(ranks.size()));
  const char mine = lacks ? 1 : 0;
  ranks.gather(&mine, sizeof mine, lacking.data());
  if (std::count(lacking.begin(), lacking.end(), 1) > 0)
    messages_ =
        std::make_unique<message_mail>(ranks, arenas, pipeline_, layout_,
                                       [&](int64_t number) { return !shared_.carries(number); });
  ranks.together([&] {
    pipeline_.for_each_chunk(layout_.stage, [&](const chunk_program &chunk, int number) {
      stashes_[static_cast<size_t>(number)] = arenas.allocate(chunk.slots * chunk.slot_bytes);
    });
  });
}

stage_mail &stage_memory::mail_of(const stage_action &message) {
  if (shared_.carries(kind_of(message)))
    return shared_;
  return *messages_;
}

void stage_memory::end_step() {
  if (messages_)
    messages_->end_step();
}

bool stage_memory::move(const stage_action &message, const arenas &places, bool fault) {
  if (messages_)
    messages_->begin_step();
  char *memory = is_of_gradients(message.kind) ? places[arena_kind::activations]
                                               : slot(message.chunk, message.slot);
  if (sends(message.kind)) {
    send(message, memory, fault);
    return fault;
  }
  return receive(message, memory);
}

void stage_memory::send(const stage_action &message, const char *made, bool fault) {
  const message_kind kind = kind_of(pipeline_, kind_of(message));
  stage_mail &mail = mail_of(message);
  char *target = mail.begin_send(message);
  *target = fault ? 1 : 0;
  target += line_bytes;
  for (const crossing_tensor &tensor : kind.tensors) {
    memcpy(target, made + tensor.from, static_cast<size_t>(tensor.bytes));
    target += round_up(tensor.bytes, line_bytes);
  }
  mail.end_send(message);
}

bool stage_memory::receive(const stage_action &message, char *read) {
  const message_kind kind = kind_of(pipeline_, kind_of(message));
  stage_mail &mail = mail_of(message);
  const char *source = mail.begin_receive(message);
  const bool fault = *source != 0;
  source += line_bytes;
  for (const crossing_tensor &tensor : kind.tensors) {
    memcpy(read + tensor.to, source, static_cast<size_t>(tensor.bytes));
    source += round_up(tensor.bytes, line_bytes);
  }
  mail.end_receive(message);
  return fault;
}

} // namespace trainc
