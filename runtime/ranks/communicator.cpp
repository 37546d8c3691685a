// SPDX-License-Identifier: Apache-2.0
//
// Ranks and their small messages, through MPI.
#include "runtime/ranks/communicator.h"

#include "runtime/process/signs_of_life.h"
#include "runtime/ranks/launcher.h"
#include "runtime/ranks/mpi.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace trainc {
namespace {

// Ranks that a launcher started apart from each other all think that they are the first: one that
// the launcher calls so says it for all, and each other, which cannot know whether that one is
// there, only what it is.
[[noreturn]] void fail_once(const launch &launch, int speaker, const std::string &message) {
  std::string short_form = format_text("rank %d: ", launch.rank) + message;
  throw failure(exit_machine,
                launch.rank == speaker ? message : short_form.substr(0, short_form.find('\n')));
}

// A large job may take its time to start, so a word comes first and the end late.
constexpr int patiences_of_start = 10;

} // namespace

// Ends the process where what it waits for takes too long, for the life of the object. No rank
// knows another then that it could watch.
class communicator::time_limit {
public:
  // After so many seconds; 0: never.
  time_limit(double seconds, std::string last_word) : time_limit(0, "", seconds, last_word) {}
  // It says a word first.
  time_limit(double seconds_to_word, std::string word, double seconds, std::string last_word) {
    if (seconds <= 0)
      return;
    thread_ = std::jthread([=, this](const std::stop_token &stop) {
      if (seconds_to_word > 0 && passes(seconds_to_word, stop))
        fputs(word.c_str(), stderr);
      if (!passes(seconds - seconds_to_word, stop))
        return;
      fputs(last_word.c_str(), stderr);
      fflush(stdout);
      _exit(exit_stalled); // the launcher takes that as the end of the job
    });
  }

  static std::unique_ptr<time_limit> of_start(int rank, double patience) {
    const double limit = patiences_of_start * patience;
    return std::make_unique<time_limit>(
        patience,
        format_text("rank %d: the job has not started for %g s; it waits for ranks that have not "
                    "called MPI, or are stopped\n"
                    "  try: a command of mpirun that starts nothing but this trainer; hosts that "
                    "have each a name of its own\n",
                    rank, patience),
        limit,
        format_text("rank %d: the job has not started for %g s, and ends\n"
                    "  try: a longer --hang-timeout, of which a start may take %d\n",
                    rank, limit, patiences_of_start));
  }

private:
  // Whether so many seconds pass before it is asked to stop.
  bool passes(double seconds, const std::stop_token &stop) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [&] {
      return stop.stop_requested();
    }) && !stop.stop_requested();
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

static std::string last_word_of_end(const std::string &rank, double seconds) {
  return format_text("%s: the work is done, and the ranks do not end together for %g s: a host or "
                     "the network may be down\n"
                     "  what the command wrote is complete\n",
                     rank.c_str(), seconds);
}

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

std::string rank_name(int rank, int process, const std::string &host) {
  return format_text("rank %d (process %d on %s)", rank, process, host.c_str());
}

communicator::communicator(double patience) : patience_(patience) {
  const launch launch = find_launch();
  if (!launch.started)
    return;
  if (!launch.problem.empty())
    fail_once(launch, 0,
              launch.problem + "\n  try: mpirun of " + mpi_name() +
                  "; for one rank, the command without " + launch.source);
  try {
    load_mpi();
  } catch (const failure &error) {
    fail_once(launch, 0, error.message);
  }
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  start_ = time_limit::of_start(launch.rank, patience);
  int provided;
  mpi_call(MPI_Init_thread)(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  launched_ = true;
  threads_may_send_ = provided == MPI_THREAD_MULTIPLE;
  mpi_call(MPI_Comm_rank)(MPI_COMM_WORLD, &rank_);
  mpi_call(MPI_Comm_size)(MPI_COMM_WORLD, &size_);
  bool is_apart = launch.size > 0 ? launch.size != size_ : launch.rank >= size_;
  if (is_apart) {
    mpi_call(MPI_Finalize)();
    bool has_size = launch.size > 0; // else the first knows of no other, and the second speaks
    std::string started = has_size ? format_text("%d ranks (%s)", launch.size, launch.source)
                                   : format_text("rank %d (%s)", launch.rank, launch.source);
    fail_once(launch, has_size ? 0 : 1,
              format_text("a launcher started %s, of which MPI sees %d: they would train apart\n"
                          "  try: mpirun of %s; for one rank, the command without %s",
                          started.c_str(), size_, mpi_name(), launch.source));
  }
  MPI_Comm host;
  mpi_call(MPI_Comm_split_type)(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  mpi_call(MPI_Comm_rank)(host, &rank_on_host_);
  mpi_call(MPI_Comm_size)(host, &ranks_on_host_);
  first_on_host_ = rank_;
  mpi_call(MPI_Bcast)(&first_on_host_, 1, MPI_INT, 0, host);
  mpi_call(MPI_Comm_free)(&host);
}

communicator::communicator(only_rank) {}

void communicator::end_start() { start_.reset(); }

void communicator::begin_end() {
  barrier();
  ends_ = true;
}

communicator::~communicator() {
  if (!launched_)
    return;
  start_.reset();
  std::optional<time_limit> end;
  try {
    if (ends_)
      end.emplace(patience_, last_word_of_end(rank_name(rank_, getpid()), patience_));
  } catch (const std::system_error &) { // no thread for it
  }
  mpi_call(MPI_Finalize)();
}

void communicator::abort(int code) {
  if (size_ == 1)
    return;
  fflush(stdout);
  fflush(stderr);
  mpi_call(MPI_Abort)(MPI_COMM_WORLD, code);
}

void communicator::together(const std::function<void()> &work) {
  int code = exit_success;
  std::string message;
  try {
    work();
  } catch (const std::exception &error) {
    failure known = as_failure(error);
    code = known.code;
    message = known.message;
  }
  const bool fails = code != exit_success;
  int mine[2] = {fails ? rank_ : size_, fails}, least[2] = {mine[0], mine[1]};
  if (size_ > 1) {
    waiting_for_ranks wait;
    mpi_call(MPI_Allreduce)(mine, least, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (least[0] < size_)
      mpi_call(MPI_Bcast)(&code, 1, MPI_INT, least[0], MPI_COMM_WORLD);
  }
  const int first = least[0];
  const bool all_fail = least[1] != 0, is_known_whose = first == 0 && ranks_on_host_ == size_;
  if (first == rank_ && !all_fail && !is_known_whose && !message.empty())
    message = rank_name(rank_, getpid()) + ": " + message;
  if (first < size_)
    throw failure(static_cast<exit_code>(code), first == rank_ ? message : "", /*everywhere=*/true);
}

std::string communicator::broadcast(const std::string &text, int root) {
  if (size_ == 1)
    return text;
  waiting_for_ranks wait;
  auto length = static_cast<uint64_t>(text.size());
  mpi_call(MPI_Bcast)(&length, 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
  std::string result = text;
  result.resize(length);
  mpi_call(MPI_Bcast)(result.data(), static_cast<int>(length), MPI_BYTE, root, MPI_COMM_WORLD);
  return result;
}

void communicator::barrier() {
  waiting_for_ranks wait;
  if (path_)
    path_->barrier();
  else if (size_ > 1)
    mpi_call(MPI_Barrier)(MPI_COMM_WORLD);
}

static constexpr int data_tag = 2; // other than the watch's; gradients are sent while no data is

void communicator::send(const void *data, int64_t size, int rank) {
  waiting_for_ranks wait;
  mpi_call(MPI_Send)(data, static_cast<int>(size), MPI_BYTE, rank, data_tag, MPI_COMM_WORLD);
}

void communicator::receive(void *data, int64_t size, int rank) {
  waiting_for_ranks wait;
  mpi_call(MPI_Recv)(data, static_cast<int>(size), MPI_BYTE, rank, data_tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

void communicator::gather(const void *mine, int64_t size, void *all) {
  waiting_for_ranks wait;
  if (path_)
    path_->gather(mine, size, all);
  else if (size_ > 1)
    mpi_call(MPI_Allgather)(mine, static_cast<int>(size), MPI_BYTE, all, static_cast<int>(size),
                            MPI_BYTE, MPI_COMM_WORLD);
  else
    memcpy(all, mine, static_cast<size_t>(size));
}

} // namespace trainc
