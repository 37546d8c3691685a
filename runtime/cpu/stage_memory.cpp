// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/stage_memory.h"

#include "runtime/cpu/message_mail.h"
#include "runtime/cpu/shared_mail.h"

#include <cstring>

namespace trainc {

stage_memory::stage_memory(communicator &ranks, arena_set &arenas, const program &program,
                           bool in_memory)
    : pipeline_(*program.stages), layout_(program, ranks.rank(), ranks.size()),
      stashes_(static_cast<size_t>(pipeline_.chunk_count)) {
  if (in_memory)
    mail_ = std::make_unique<shared_mail>(ranks, pipeline_, layout_);
  else
    mail_ = std::make_unique<message_mail>(ranks, arenas, pipeline_, layout_);
  ranks.together([&] {
    pipeline_.for_each_chunk(layout_.stage, [&](const chunk_program &chunk, int number) {
      stashes_[static_cast<size_t>(number)] = arenas.allocate(chunk.slots * chunk.slot_bytes);
    });
  });
}

bool stage_memory::move(const stage_action &message, const arenas &places, bool fault) {
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
  char *target = mail_->begin_send(message);
  *target = fault ? 1 : 0;
  target += line_bytes;
  for (int64_t i = 0; i < kind.count; ++i) {
    memcpy(target, made + kind.tensors[i].from, static_cast<size_t>(kind.tensors[i].bytes));
    target += round_up(kind.tensors[i].bytes, line_bytes);
  }
  mail_->end_send(message);
}

bool stage_memory::receive(const stage_action &message, char *read) {
  const message_kind kind = kind_of(pipeline_, kind_of(message));
  const char *source = mail_->begin_receive(message);
  const bool fault = *source != 0;
  source += line_bytes;
  for (int64_t i = 0; i < kind.count; ++i) {
    memcpy(read + kind.tensors[i].to, source, static_cast<size_t>(kind.tensors[i].bytes));
    source += round_up(kind.tensors[i].bytes, line_bytes);
  }
  mail_->end_receive(message);
  return fault;
}

} // namespace trainc
