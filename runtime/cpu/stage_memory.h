// SPDX-License-Identifier: Apache-2.0
//
// The memory of a rank's stage: the stashes of its chunks, and a mailbox for each kind of message
// that it receives. Mailboxes lie in memory that the ranks of a host map: the sender copies tensors
// to a free place, the receiver from there to where its functions read them, so neither waits for
// the other while places are left.
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

  // Of a chunk of the rank's stage.
  char *slot(int chunk, int number) const {
    return stashes_[static_cast<size_t>(chunk)] + number * pipeline_.chunks[chunk].slot_bytes;
  }
  // With a message goes whether its micro-batch has a fault; a receive returns that.
  bool move(const stage_action &message, const arenas &places, bool fault);

  // Of a rank: stashes and mailboxes.
  static int64_t bytes_of(const program &program, int stage);

private:
  struct mailbox;
  struct letter;
  letter letter_of(const stage_action &message) const;
  void send(const letter &to, const char *made, int place, bool fault);
  bool receive(const letter &from, char *read, int place);

  const pipeline &pipeline_;
  stage_layout layout_;
  std::vector<char *> files_;   // of each rank
  std::vector<char *> stashes_; // by chunk
};

} // namespace trainc
