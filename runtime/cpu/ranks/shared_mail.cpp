// SPDX-License-Identifier: Apache-2.0
//
// A rank's file: a page, then for each kind that it receives from its host the mailbox: counters,
// then its places. Both sides know where from the tables of the program.
#include "runtime/cpu/ranks/shared_mail.h"

#include "runtime/cpu/ranks/shared_wait.h"
#include "runtime/ranks/rank_memory.h"

#include <sys/mman.h>

namespace trainc {

// Messages are counted from the start of the run; one is in place `action.place`.
struct shared_mail::mailbox {
  std::atomic<uint32_t> sent;
  alignas(64) std::atomic<uint32_t> taken;
};

namespace {

constexpr int64_t box_bytes = cpu_messages.box;
static_assert(cpu_messages.line == line_bytes && cpu_messages.base == page_bytes);

int64_t bytes_of_box(const message_kind &kind) {
  return box_bytes + kind.places * kind.place_bytes();
}

} // namespace

bool shared_mail::carries(int replica, int64_t kind) const {
  const message_kind of = kind_of(pipeline_, kind);
  return hosts_[static_cast<size_t>(layout_.rank_of(replica, of.sender))] ==
         hosts_[static_cast<size_t>(layout_.rank_of(replica, of.receiver))];
}

// Calls found(kind, offset in the file) for what a rank receives in this way; returns the file's
// bytes.
template <typename Found> int64_t shared_mail::each_mailbox(int rank, const Found &found) const {
  int64_t offset = page_bytes;
  for (int64_t number = 0; number < kind_count(pipeline_); ++number) {
    const message_kind kind = kind_of(pipeline_, number);
    if (kind.receiver != rank % layout_.stages || !carries(rank / layout_.stages, number))
      continue;
    found(number, offset);
    offset += bytes_of_box(kind);
  }
  return offset;
}

int64_t shared_mail::bytes_of_file(int rank) const {
  return each_mailbox(rank, [](int64_t, int64_t) {});
}

shared_mail::shared_mail(communicator &ranks, const pipeline &pipeline, const stage_layout &layout,
                         bool wanted)
    : pipeline_(pipeline), layout_(layout), hosts_(static_cast<size_t>(ranks.size())),
      offsets_(static_cast<size_t>(kind_count(pipeline))) {
  if (!wanted)
    return;
  const int host = ranks.first_on_host();
  ranks.gather(&host, sizeof host, hosts_.data());
  const std::vector<char *> shared =
      share_with_host("trainc-messages", bytes_of_file(ranks.rank()));
  if (shared.empty())
    return;
  files_.resize(hosts_.size());
  auto next = shared.begin();
  for (size_t rank = 0; rank < hosts_.size(); ++rank)
    if (hosts_[rank] == host)
      files_[rank] = *next++;
  for (int stage = 0; stage < layout_.stages; ++stage)
    each_mailbox(layout_.rank_of(layout_.replica, stage), [&](int64_t kind, int64_t offset) {
      offsets_[static_cast<size_t>(kind)] = offset;
    });
}

shared_mail::~shared_mail() {
  for (size_t rank = 0; rank < files_.size(); ++rank)
    if (files_[rank])
      munmap(files_[rank], static_cast<size_t>(bytes_of_file(static_cast<int>(rank))));
}

shared_mail::mailbox &shared_mail::box_of(const stage_action &message) const {
  const int64_t number = kind_of(message);
  const int receiver = layout_.rank_of(layout_.replica, kind_of(pipeline_, number).receiver);
  return *reinterpret_cast<mailbox *>(files_[static_cast<size_t>(receiver)] +
                                      offsets_[static_cast<size_t>(number)]);
}

char *shared_mail::place_of(const stage_action &message) const {
  return reinterpret_cast<char *>(&box_of(message)) + box_bytes +
         message.place * kind_of(pipeline_, kind_of(message)).place_bytes();
}

char *shared_mail::begin_send(const stage_action &message) {
  mailbox &box = box_of(message);
  const auto places = static_cast<uint32_t>(kind_of(pipeline_, kind_of(message)).places);
  const uint32_t sent = box.sent.load();
  for (;;) {
    const uint32_t taken = box.taken.load();
    if (sent - taken < places)
      return place_of(message);
    wait_for_change(box.taken, taken);
  }
}

void shared_mail::end_send(const stage_action &message) { change(box_of(message).sent); }

const char *shared_mail::begin_receive(const stage_action &message) {
  mailbox &box = box_of(message);
  const uint32_t taken = box.taken.load();
  while (box.sent.load() == taken)
    wait_for_change(box.sent, taken);
  return place_of(message);
}

void shared_mail::end_receive(const stage_action &message) { change(box_of(message).taken); }

} // namespace trainc
