// SPDX-License-Identifier: Apache-2.0
//
// A rank's file: a page, then for each kind that it receives the mailbox: counters, then its
// places. Both sides know where from the tables of the program.
#include "runtime/cpu/shared_mail.h"

#include "runtime/cpu/shared_wait.h"
#include "runtime/failure.h"
#include "runtime/rank_memory.h"

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

// Calls found(kind, offset in the file) for what a stage receives.
template <typename Found>
int64_t each_mailbox(const pipeline &pipeline, int stage, const Found &found) {
  int64_t offset = page_bytes;
  for (int64_t number = 0; number < kind_count(pipeline); ++number) {
    const message_kind kind = kind_of(pipeline, number);
    if (kind.receiver != stage)
      continue;
    found(number, offset);
    offset += box_bytes + kind.places * kind.place_bytes();
  }
  return offset;
}

} // namespace

int64_t shared_mail::bytes_of(const pipeline &pipeline, int stage) {
  return each_mailbox(pipeline, stage, [](int64_t, int64_t) {});
}

shared_mail::shared_mail(communicator &ranks, const pipeline &pipeline, const stage_layout &layout)
    : pipeline_(pipeline), layout_(layout), offsets_(static_cast<size_t>(kind_count(pipeline))) {
  for (int stage = 0; stage < layout_.stages; ++stage)
    each_mailbox(pipeline_, stage, [&](int64_t kind, int64_t offset) {
      offsets_[static_cast<size_t>(kind)] = offset;
    });
  if (ranks.ranks_on_host() == ranks.size())
    files_ = share_with_host("trainc-messages", bytes_of(pipeline_, layout_.stage));
  ranks.together([&] {
    if (files_.empty())
      throw failure(exit_machine, "the stages of a pipeline do not share memory for their "
                                  "messages\n  try: --communication messages");
  });
}

shared_mail::~shared_mail() {
  for (size_t rank = 0; rank < files_.size(); ++rank)
    munmap(files_[rank],
           static_cast<size_t>(bytes_of(pipeline_, static_cast<int>(rank) % layout_.stages)));
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
