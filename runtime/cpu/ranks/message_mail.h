// SPDX-License-Identifier: Apache-2.0
//
// Messages of a step in stages by MPI, between ranks that do not share memory. Both sides have the
// places that the plan gives the receiver: the receives of all of them are posted ahead, and what
// is sent stays in its place until MPI has done with it. So a send waits at most until what went
// before it by so many messages has a receive, however little MPI takes unasked: less than what the
// proof of the schedule lets it wait for (passes/planning/schedule_proof.h).
#pragma once

#include "runtime/arena.h"
#include "runtime/cpu/ranks/stage_mail.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/stage_layout.h"

#include <functional>
#include <memory>

namespace trainc {

class message_mail final : public stage_mail {
public:
  // For the kinds whose takes(number) is true. Collective; throws `failure`.
  message_mail(communicator &ranks, arena_set &arenas, const pipeline &pipeline,
               const stage_layout &layout, const std::function<bool(int64_t)> &takes);
  ~message_mail() override;
  message_mail(const message_mail &) = delete;
  message_mail &operator=(const message_mail &) = delete;

  char *begin_send(const stage_action &message) override;
  void end_send(const stage_action &message) override;
  const char *begin_receive(const stage_action &message) override;
  void end_receive(const stage_action &message) override;
  // From here to the end of the step messages go on while this rank computes or waits, where MPI
  // can be called from several threads.
  void begin_step();
  void end_step(); // all ranks have met: no message is on its way

private:
  struct state;
  std::unique_ptr<state> own_;
};

} // namespace trainc
