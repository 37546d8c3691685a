// SPDX-License-Identifier: Apache-2.0
//
// The memory of a rank's stage: the stashes of its chunks, and the places of messages. Tensors are
// copied from where a function left them to a place, and from one to where functions read them.
#pragma once

#include "runtime/arena.h"
#include "runtime/cpu/ranks/message_mail.h"
#include "runtime/cpu/ranks/shared_mail.h"
#include "runtime/options/options.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/stage_layout.h"

#include <memory>
#include <vector>

namespace trainc {

class stage_memory {
public:
  // Collective; `program` is cut into stages. Throws `failure`.
  stage_memory(communicator &ranks, arena_set &arenas, const program &program,
               communication_kind kind);

  // Of a chunk of the rank's stage.
  char *slot(int chunk, int number) const {
    return stashes_[static_cast<size_t>(chunk)] + number * pipeline_.chunks[chunk].slot_bytes;
  }
  // With a message goes whether its micro-batch has a fault; a receive returns that.
  bool move(const stage_action &message, const arenas &places, bool fault);
  void end_step(); // all ranks have met

private:
  stage_mail &mail_of(const stage_action &message);
  void send(const stage_action &message, const char *made, bool fault);
  bool receive(const stage_action &message, char *read);

  const pipeline &pipeline_;
  stage_layout layout_;
  std::vector<char *> stashes_; // by chunk
  shared_mail shared_;
  std::unique_ptr<message_mail> messages_; // where some kinds go to or from other hosts
};

} // namespace trainc
