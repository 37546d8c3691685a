// SPDX-License-Identifier: Apache-2.0
//
// Messages are in flight one at a time in each direction, so a rank that is stopped piles up none.
#include "runtime/ranks/heartbeat.h"

#include "runtime/ranks/mpi.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace trainc {
namespace {

// For the last word. Who is over sooner hears it no more, and a long message then waits for ever.
constexpr auto time_for_last = std::chrono::seconds(1);

} // namespace

struct heartbeat::state {
  // Between the first rank of a host and the first of all.
  struct line {
    int rank; // of the other, among the first ranks
    std::vector<char> sent, received;
    MPI_Request sending, receiving;
  };
  MPI_Comm first_ranks;
  std::vector<char> mine;
  std::vector<line> lines;

  int bytes() const { return static_cast<int>(mine.size()); }
  void listen(line &to) {
    mpi_call(MPI_Irecv)(to.received.data(), bytes(), MPI_BYTE, to.rank, 0, first_ranks,
                        &to.receiving);
  }
  static bool is_over(MPI_Request &request) {
    int over;
    mpi_call(MPI_Test)(&request, &over, MPI_STATUS_IGNORE);
    return over;
  }
  static bool is_over_by(std::chrono::steady_clock::time_point end, MPI_Request &request) {
    while (!is_over(request)) {
      if (std::chrono::steady_clock::now() >= end)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void send(line &to) {
    std::copy(mine.begin(), mine.end(), to.sent.begin());
    mpi_call(MPI_Isend)(to.sent.data(), bytes(), MPI_BYTE, to.rank, 0, first_ranks, &to.sending);
  }
};

heartbeat::heartbeat(const communicator &ranks, size_t bytes) {
  if (ranks.size() == 1 || !ranks.threads_may_send())
    return;
  MPI_Comm first_ranks;
  mpi_call(MPI_Comm_split)(MPI_COMM_WORLD, ranks.rank_on_host() == 0 ? 0 : MPI_UNDEFINED,
                           ranks.rank(), &first_ranks);
  if (first_ranks == MPI_COMM_NULL)
    return;
  int rank, size;
  mpi_call(MPI_Comm_rank)(first_ranks, &rank);
  mpi_call(MPI_Comm_size)(first_ranks, &size);
  if (size == 1) {
    mpi_call(MPI_Comm_free)(&first_ranks);
    return;
  }
  own_.reset(new state{first_ranks, std::vector<char>(bytes), {}});
  for (int other = 0; other < size; ++other)
    if (other != rank && (rank == 0 || other == 0))
      own_->lines.push_back({other, std::vector<char>(bytes), std::vector<char>(bytes),
                             MPI_REQUEST_NULL, MPI_REQUEST_NULL});
  for (state::line &each : own_->lines)
    own_->listen(each);
}

heartbeat::~heartbeat() {
  if (!own_)
    return;
  const auto end = std::chrono::steady_clock::now() + time_for_last;
  bool all_sent = true;
  for (state::line &each : own_->lines)
    if (state::is_over_by(end, each.sending))
      own_->send(each);
  for (state::line &each : own_->lines) {
    if (!state::is_over_by(end, each.sending)) {
      mpi_call(MPI_Cancel)(&each.sending);
      mpi_call(MPI_Request_free)(&each.sending);
      all_sent = false;
    }
    mpi_call(MPI_Cancel)(&each.receiving);
    mpi_call(MPI_Wait)(&each.receiving, MPI_STATUS_IGNORE);
  }
  if (!all_sent)
    (void)own_.release(); // MPI may still read it
}

int heartbeat::hosts() const { return own_ ? static_cast<int>(own_->lines.size()) : 0; }

char *heartbeat::mine() { return own_->mine.data(); }

void heartbeat::beat(const std::function<void(int, const char *)> &see) {
  for (size_t host = 0; host < own_->lines.size(); ++host) {
    state::line &each = own_->lines[host];
    while (state::is_over(each.receiving)) {
      see(static_cast<int>(host), each.received.data());
      own_->listen(each);
    }
    if (state::is_over(each.sending))
      own_->send(each);
  }
}

} // namespace trainc
