// SPDX-License-Identifier: Apache-2.0
//
// What tests/train/ranks/stage_mail.test runs under mpirun: two stages that send each other
// messages as those of a step do, without a model between.
//
//   stage_mail_ranks BYTES
#include "runtime/cpu/ranks/message_mail.h"
#include "runtime/process/clock.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace trainc;

extern const program trainc::trainer_program = {};

namespace {

constexpr int messages = 9, places = 2; // which do not divide them: the next step begins elsewhere
constexpr auto work = std::chrono::milliseconds(1500);

void check(bool holds, const char *what, int number) {
  if (holds)
    return;
  fprintf(stderr, "message %d: %s\n", number, what);
  exit(1);
}

struct stage {
  message_mail mail;
  int64_t last; // byte of a message
  int rank;

  static stage_action action_of(stage_action_kind kind, int number) {
    return {kind, /*chunk=*/0, number, /*slot=*/0, /*boundary=*/0, number % places};
  }
  void send(int number) {
    const bool is_gradient = rank == 1;
    const stage_action action = action_of(is_gradient ? stage_action_kind::send_gradient
                                                      : stage_action_kind::send_activation,
                                          number);
    char *place = mail.begin_send(action);
    place[0] = place[last] = static_cast<char>(10 * rank + number);
    mail.end_send(action);
  }
  void receive(int number) {
    const bool is_gradient = rank == 0;
    const stage_action action = action_of(is_gradient ? stage_action_kind::receive_gradient
                                                      : stage_action_kind::receive_activation,
                                          number);
    const char *place = mail.begin_receive(action),
               expected = static_cast<char>(10 * (1 - rank) + number);
    check(place[0] == expected && place[last] == expected, "is another", number);
    mail.end_receive(action);
  }
};

} // namespace

int main(int, char **arguments) {
  communicator ranks;
  arena_set memory;
  const crossing_tensor tensor = {"x", 0, 0, atoll(arguments[1])};
  const chunk_boundary boundary = {0, 1, {&tensor, 1}, {&tensor, 1}, places, places};
  pipeline pipeline = {};
  pipeline.stages = 2;
  pipeline.boundaries = {&boundary, 1};
  stage_layout layout;
  layout.stages = 2;
  layout.stage = ranks.rank();
  stage own = {
      {ranks, memory, pipeline, layout, [](int64_t) { return true; }}, tensor.bytes, ranks.rank()};

  // Both send as many as the receiver has places before either takes one.
  for (int step = 0; step < 3; ++step) {
    own.mail.begin_step();
    for (int number = 0; number < messages + places; ++number) {
      if (number < messages)
        own.send(number);
      if (number >= places)
        own.receive(number - places);
    }
    ranks.barrier();
    own.mail.end_step();
  }

  // A large one arrives while its sender computes.
  const double began = seconds_now();
  own.mail.begin_step();
  if (ranks.rank() == 0) {
    own.send(0);
    std::this_thread::sleep_for(work);
  } else {
    own.receive(0);
    check(seconds_now() - began < std::chrono::duration<double>(work).count() / 2,
          "has waited for its sender's work", 0);
  }
  ranks.barrier();
  own.mail.end_step();
}
