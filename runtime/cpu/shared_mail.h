// SPDX-License-Identifier: Apache-2.0
//
// Mailboxes in memory that the ranks of a host map, one for each kind of message that a rank
// receives: the sender writes to a free place of the receiver's, so neither waits for the other
// while places are left.
#pragma once

#include "runtime/communicator.h"
#include "runtime/cpu/stage_mail.h"
#include "runtime/stage_layout.h"

#include <vector>

namespace trainc {

class shared_mail final : public stage_mail {
public:
  // Collective. Throws `failure` (exit_machine) where the ranks do not share memory.
  shared_mail(communicator &ranks, const pipeline &pipeline, const stage_layout &layout);
  ~shared_mail() override;
  shared_mail(const shared_mail &) = delete;
  shared_mail &operator=(const shared_mail &) = delete;

  char *begin_send(const stage_action &message) override;
  void end_send(const stage_action &message) override;
  const char *begin_receive(const stage_action &message) override;
  void end_receive(const stage_action &message) override;

  static int64_t bytes_of(const pipeline &pipeline, int stage); // of a rank

private:
  struct mailbox;
  mailbox &box_of(const stage_action &message) const;
  char *place_of(const stage_action &message) const;

  const pipeline &pipeline_;
  stage_layout layout_;
  std::vector<char *> files_;    // of each rank
  std::vector<int64_t> offsets_; // by kind, of the box in the receiver's file
};

} // namespace trainc
