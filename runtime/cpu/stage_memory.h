// SPDX-License-Identifier: Apache-2.0
//
// The memory of a rank's stage: its stash, and a mailbox for each kind of message that it receives.
// Mailboxes lie in memory that the ranks of a host map: the sender copies tensors to a free place,
// the receiver from there to where its functions read them, so neither waits for the other while
// places are left.
#pragma once

#include "runtime/arena.h"
#include "runtime/communicator.h"
#include "runtime/stage_layout.h"

#include <vector>

namespace trainc {

class stage_memory {
public:
  // Collective; `program` is cut into stages. Throws `failure` (exit_machine) where the ranks do
  // not share memory.
  stage_memory(communicator &ranks, arena_set &arenas, const program &program);
  ~stage_memory();
  stage_memory(const stage_memory &) = delete;
  stage_memory &operator=(const stage_memory &) = delete;

  // Of the rank's stage.
  const stage_program &own() const { return pipeline_.programs[layout_.stage]; }
  char *slot(int number) const { return stash_ + number * own().slot_bytes; }
  // With a message goes whether its micro-batch has a fault; a receive returns that.
  bool move(const stage_action &message, const arenas &places, bool fault);

  // Of a rank: stash and mailboxes.
  static int64_t bytes_of(const program &program, int stage);

private:
  struct mailbox;
  struct letter;
  letter letter_of(const stage_action &message) const;
  void send(const letter &to, const char *made, int place, bool fault);
  bool receive(const letter &from, char *read, int place);

  const pipeline &pipeline_;
  stage_layout layout_;
  std::vector<char *> files_; // of each rank
  char *stash_ = nullptr;
};

} // namespace trainc
