// SPDX-License-Identifier: Apache-2.0
//
// Mailboxes in memory that the ranks of a host map, one for each kind of message that a rank
// receives: the sender writes to a free place of the receiver's, so neither waits for the other
// while places are left.
#pragma once

#include "runtime/cpu/ranks/stage_mail.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/stage_layout.h"

#include <vector>

namespace trainc {

class shared_mail final : public stage_mail {
public:
  // Collective. `wanted`, on every rank the same: else it carries nothing.
  shared_mail(communicator &ranks, const pipeline &pipeline, const stage_layout &layout,
              bool wanted);
  ~shared_mail() override;
  shared_mail(const shared_mail &) = delete;
  shared_mail &operator=(const shared_mail &) = delete;

  // Whether both ranks of a kind, in this replica, are on one host and share memory.
  bool carries(int64_t kind) const { return !files_.empty() && carries(layout_.replica, kind); }

  char *begin_send(const stage_action &message) override;
  void end_send(const stage_action &message) override;
  const char *begin_receive(const stage_action &message) override;
  void end_receive(const stage_action &message) override;

private:
  struct mailbox;
  bool carries(int replica, int64_t kind) const;
  template <typename Found> int64_t each_mailbox(int rank, const Found &found) const;
  int64_t bytes_of_file(int rank) const;
  mailbox &box_of(const stage_action &message) const;
  char *place_of(const stage_action &message) const;

  const pipeline &pipeline_;
  stage_layout layout_;
  std::vector<int> hosts_;       // of each rank: the first rank there
  std::vector<char *> files_;    // of each rank of this host; null of others; empty: not shared
  std::vector<int64_t> offsets_; // by kind, of the box in the receiver's file
};

} // namespace trainc
