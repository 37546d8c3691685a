// SPDX-License-Identifier: Apache-2.0
//
// A rank sends and receives each kind in one order, and places follow each other around: either
// side counts for itself. Between chunks of one rank a place is written and read where it is.
#include "runtime/cpu/ranks/message_mail.h"

#include "runtime/cpu/ranks/shared_wait.h"
#include "runtime/process/clock.h"
#include "runtime/ranks/mpi.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <pthread.h>
#include <thread>
#include <vector>

namespace trainc {
namespace {

constexpr double spin_seconds = 200e-6; // before a wait lets others have the core
constexpr auto nap = std::chrono::microseconds(50);
constexpr auto nap_of_postman = std::chrono::microseconds(100);
constexpr double seconds_for_last = 1; // messages, where a run ends in the middle of a step

bool is_over(MPI_Request &request) {
  int over;
  mpi_call(MPI_Test)(&request, &over, MPI_STATUS_IGNORE);
  return over;
}

void wait_for(MPI_Request &request) {
  if (is_over(request))
    return;
  const double began = seconds_now();
  while (!is_over(request))
    if (seconds_now() - began > spin_seconds)
      std::this_thread::sleep_for(nap);
  note_waited(seconds_now() - began);
}

// Calls visit(number, kind) for what a stage sends and receives.
template <typename Takes, typename Visit>
void for_each_kind(const pipeline &pipeline, int stage, const Takes &takes, const Visit &visit) {
  for (int number = 0; number < kind_count(pipeline); ++number)
    if (const message_kind kind = kind_of(pipeline, number);
        (kind.sender == stage || kind.receiver == stage) && takes(number))
      visit(number, kind);
}

} // namespace

struct message_mail::state {
  struct box {
    int other = -1; // rank; -1: this one
    char *memory = nullptr;
    int64_t place_bytes = 0;
    std::vector<MPI_Request> requests; // of each place
    uint64_t sent = 0, taken = 0;

    size_t place(uint64_t number) const { return static_cast<size_t>(number % requests.size()); }
    char *address(uint64_t number) const {
      return memory + static_cast<int64_t>(place(number)) * place_bytes;
    }
  };

  MPI_Comm stages = MPI_COMM_NULL; // whose messages are these alone
  MPI_Datatype line = MPI_DATATYPE_NULL;
  std::vector<box> boxes = {}; // by kind; those of other stages are empty
  std::atomic<bool> in_step = false;
  std::jthread postman = {};

  // Wakes where a step begins.
  void carry(const std::stop_token &stop) {
    while (!stop.stop_requested()) {
      in_step.wait(false);
      int found; // does not matter: to ask lets messages go on
      mpi_call(MPI_Iprobe)(MPI_ANY_SOURCE, MPI_ANY_TAG, stages, &found, MPI_STATUS_IGNORE);
      std::this_thread::sleep_for(nap_of_postman);
    }
  }

  box &of(const stage_action &message) { return boxes[static_cast<size_t>(kind_of(message))]; }
  int lines_of(const box &box) const { return static_cast<int>(box.place_bytes / line_bytes); }
  void listen(int kind, uint64_t number) {
    box &box = boxes[static_cast<size_t>(kind)];
    mpi_call(MPI_Irecv)(box.address(number), lines_of(box), line, box.other, kind, stages,
                        &box.requests[box.place(number)]);
  }
};

message_mail::message_mail(communicator &ranks, arena_set &arenas, const pipeline &pipeline,
                           const stage_layout &layout, const std::function<bool(int64_t)> &takes)
    : own_(std::make_unique<state>()) {
  mpi_call(MPI_Comm_dup)(MPI_COMM_WORLD, &own_->stages);
  mpi_call(MPI_Type_contiguous)(line_bytes, MPI_BYTE, &own_->line);
  mpi_call(MPI_Type_commit)(&own_->line);
  own_->boxes.resize(static_cast<size_t>(kind_count(pipeline)));
  char *memory = nullptr;
  int64_t bytes = 0;
  for_each_kind(pipeline, layout.stage, takes,
                [&](int, const message_kind &kind) { bytes += kind.places * kind.place_bytes(); });
  ranks.together([&] { memory = arenas.allocate(bytes); });
  for_each_kind(pipeline, layout.stage, takes, [&](int number, const message_kind &kind) {
    state::box &box = own_->boxes[static_cast<size_t>(number)];
    box.memory = memory;
    box.place_bytes = kind.place_bytes();
    box.requests.assign(static_cast<size_t>(kind.places), MPI_REQUEST_NULL);
    memory += kind.places * box.place_bytes;
    if (kind.sender == kind.receiver)
      return;
    const bool sends = kind.sender == layout.stage;
    box.other = layout.rank_of(layout.replica, sends ? kind.receiver : kind.sender);
    for (int place = 0; place < kind.places && !sends; ++place)
      own_->listen(number, static_cast<uint64_t>(place));
  });
  const bool is_needed = std::any_of(own_->boxes.begin(), own_->boxes.end(),
                                     [](const state::box &box) { return box.other >= 0; });
  if (!is_needed || !ranks.threads_may_send())
    return;
  own_->postman =
      std::jthread([own = own_.get()](const std::stop_token &stop) { own->carry(stop); });
  pthread_setname_np(own_->postman.native_handle(), "postman");
}

void message_mail::begin_step() {
  if (!own_->in_step.exchange(true))
    own_->in_step.notify_one();
}

void message_mail::end_step() { own_->in_step = false; }

// All messages of whole steps have been sent and taken; receives may be posted.
message_mail::~message_mail() {
  own_->postman.request_stop();
  begin_step(); // it may be asleep
  if (own_->postman.joinable())
    own_->postman.join();
  const double end = seconds_now() + seconds_for_last;
  for (state::box &box : own_->boxes)
    for (MPI_Request &request : box.requests) {
      if (request == MPI_REQUEST_NULL)
        continue;
      const bool is_receive = box.sent == 0;
      while (!is_receive && !is_over(request) && seconds_now() < end)
        std::this_thread::sleep_for(nap);
      if (request == MPI_REQUEST_NULL)
        continue;
      mpi_call(MPI_Cancel)(&request);
      if (is_receive)
        mpi_call(MPI_Wait)(&request, MPI_STATUS_IGNORE);
      else
        mpi_call(MPI_Request_free)(&request);
    }
}

char *message_mail::begin_send(const stage_action &message) {
  state::box &box = own_->of(message);
  wait_for(box.requests[box.place(box.sent)]);
  return box.address(box.sent);
}

void message_mail::end_send(const stage_action &message) {
  state::box &box = own_->of(message);
  const uint64_t number = box.sent++;
  if (box.other >= 0)
    mpi_call(MPI_Isend)(box.address(number), own_->lines_of(box), own_->line, box.other,
                        static_cast<int>(kind_of(message)), own_->stages,
                        &box.requests[box.place(number)]);
}

const char *message_mail::begin_receive(const stage_action &message) {
  state::box &box = own_->of(message);
  wait_for(box.requests[box.place(box.taken)]);
  return box.address(box.taken);
}

void message_mail::end_receive(const stage_action &message) {
  state::box &box = own_->of(message);
  const uint64_t number = box.taken++;
  if (box.other >= 0)
    own_->listen(static_cast<int>(kind_of(message)), number);
}

} // namespace trainc
