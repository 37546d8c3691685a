// SPDX-License-Identifier: Apache-2.0
//
// Three signs of a rank for which the others wait in vain. Its process has ended without a word.
// Its thread no longer counts time: the process is stopped or its machine swaps. Or all others of
// the host wait in an exchange, much longer than any step took, while it does something else: it
// hangs there.
#include "runtime/watchdog.h"

#include "runtime/clock.h"
#include "runtime/shared_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr auto interval = std::chrono::milliseconds(100);
// Between a message and the end of the process, so that the launcher's own words come after it.
constexpr auto time_to_forward = std::chrono::milliseconds(200);
constexpr double shortest_limit = 1;    // second: below, a busy host looks stopped
constexpr double steps_of_patience = 5; // ranks of one job do equal work
constexpr int fatal_signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

const char *name_of(activity what) {
  switch (what) {
  case activity::start:
    return "starting";
  case activity::computing:
    return "computing";
  case activity::exchanging:
    return "exchanging gradients";
  case activity::evaluating:
    return "evaluating";
  case activity::saving:
    return "writing a checkpoint";
  case activity::end:
    break;
  }
  return "ending";
}

} // namespace

struct watchdog::page {
  uint64_t not_ours; // shared_memory.h
  int rank, process;
  std::atomic<activity> what;
  std::atomic<int64_t> step;
  std::atomic<double> since;        // seconds_now() at which `what` began
  std::atomic<double> longest_step; // seconds, so far
  std::atomic<double> alive;        // last sign of the thread
  // Of the first rank, for all: somebody says why the job ends; has said it, and this is its code.
  std::atomic<bool> reported;
  std::atomic<int> code;
};

namespace {

watchdog *of_this_process = nullptr; // for the signal handler
struct sigaction handlers_before[std::size(fatal_signals)];

} // namespace

watchdog::watchdog(communicator &ranks, bool watches, double seconds)
    : ranks_(ranks), limit_(seconds > 0 ? std::max(seconds, shortest_limit)
                                        : std::numeric_limits<double>::infinity()),
      name_(rank_name(ranks.rank(), getpid())), alone_(new page()), own_(alone_.get()) {
  static_assert(sizeof(page) <= page_bytes);
  own_->since = seconds_now();
  of_this_process = this;
  for (size_t i = 0; i < std::size(fatal_signals); ++i) {
    struct sigaction action = {};
    action.sa_sigaction = on_fatal_signal;
    action.sa_flags = SA_SIGINFO;
    sigaction(fatal_signals[i], &action, &handlers_before[i]);
  }
  if (!watches || ranks.ranks_on_host() < 2)
    return;
  for (char *file : share_with_host("trainc-watchdog", page_bytes))
    pages_.push_back(reinterpret_cast<page *>(file));
  if (pages_.empty())
    return;
  own_ = pages_[static_cast<size_t>(ranks.rank_on_host())];
  own_->rank = ranks.rank();
  own_->process = getpid();
  own_->alive = own_->since = seconds_now();
  ranks.barrier(); // every page says whose it is
  ranks.together([&] {
    for (page *each : pages_) {
      // A kernel before 5.3 has no such descriptors (-1): there a dead rank is a silent one.
      auto process =
          each == own_ ? -1 : static_cast<int>(syscall(SYS_pidfd_open, each->process, 0));
      processes_.push_back({process, POLLIN, 0});
    }
    thread_ = std::thread([this] { watch(); });
    pthread_setname_np(thread_.native_handle(), "watchdog");
  });
}

watchdog::~watchdog() {
  of_this_process = nullptr;
  own_->what = activity::end;
  stops_ = true;
  if (thread_.joinable())
    thread_.join();
  for (const pollfd &process : processes_)
    if (process.fd >= 0)
      close(process.fd);
  for (page *each : pages_)
    munmap(each, page_bytes);
}

void watchdog::begin_step(int64_t step) {
  begin_batch();
  own_->step = step;
}

void watchdog::begin_batch() {
  double time = seconds_now();
  if (step_began_ > 0)
    own_->longest_step = std::max(own_->longest_step.load(), time - step_began_);
  step_began_ = time;
}

void watchdog::now(activity what) {
  double time = seconds_now();
  spent_[static_cast<size_t>(own_->what.load())] += time - own_->since;
  own_->since = time;
  own_->what = what;
}

const watchdog::page *watchdog::dead() const {
  for (size_t i = 0; i < processes_.size(); ++i)
    if ((processes_[i].revents & POLLIN) && pages_[i]->what != activity::end)
      return pages_[i];
  return nullptr;
}

const watchdog::page *watchdog::silent(double time) const {
  for (const page *other : pages_)
    if (other != own_ && other->what != activity::end && time - other->alive > limit_)
      return other;
  return nullptr;
}

// The rank that all others of the host wait for.
const watchdog::page *watchdog::awaited(double time) const {
  const page *found = nullptr;
  for (const page *other : pages_) {
    if (other->what == activity::end)
      return nullptr;
    if (other->what != activity::exchanging) {
      if (found)
        return nullptr;
      found = other;
    } else if (time - other->since < std::max(limit_, steps_of_patience * other->longest_step)) {
      return nullptr;
    }
  }
  return found;
}

// Returns at once when a process ends.
void watchdog::wait_for_deaths(std::chrono::milliseconds limit) {
  poll(processes_.data(), processes_.size(), static_cast<int>(limit.count()));
  for (size_t i = 0; i < processes_.size(); ++i)
    if ((processes_[i].revents & POLLIN) && pages_[i]->what == activity::end) {
      close(processes_[i].fd);
      processes_[i] = {-1, POLLIN, 0};
    }
}

void watchdog::watch() {
  const char *advice = "  try: --hang-timeout SECONDS where a rank may be silent for longer\n";
  double last = seconds_now(), judges_from = 0;
  while (!stops_) {
    wait_for_deaths(interval);
    double time = seconds_now();
    own_->alive = time;
    if (int code = of_all().code; code != 0 && !ends_job_) {
      std::this_thread::sleep_for(time_to_forward);
      _exit(code);
    }
    if (const page *culprit = dead())
      end_job(*culprit, "has died", "");
    if (time - last > limit_ / 2) // we were stopped ourselves, and perhaps others: they get time
      judges_from = time + limit_;
    last = time;
    if (time < judges_from || own_->what == activity::end)
      continue;
    if (const page *culprit = silent(time))
      end_job(*culprit, format_text("gives no sign of life since %.0f s", time - culprit->alive),
              advice);
    if (const page *culprit = awaited(time); culprit && culprit != own_)
      end_job(*culprit,
              format_text("is waited for by all others of its host since %.0f s",
                          time - culprit->since),
              advice);
  }
}

watchdog::page &watchdog::of_all() { return pages_.empty() ? *alone_ : *pages_.front(); }

void watchdog::end_job(const page &culprit, const std::string &what_happened, const char *advice) {
  if (!of_all().reported.exchange(true)) {
    fprintf(stderr, "%s %s: it was %s, step %lld\n%s",
            rank_name(culprit.rank, culprit.process).c_str(), what_happened.c_str(),
            name_of(culprit.what), static_cast<long long>(culprit.step.load()), advice);
    fflush(stderr);
    std::this_thread::sleep_for(time_to_forward);
  }
  _exit(exit_stalled);
}

int watchdog::supervise(const std::function<int()> &work) {
  try {
    return work();
  } catch (const std::exception &error) {
    const failure known = as_failure(error);
    if (ranks_.size() > 1 && !known.everywhere)
      end_job(known);
    else if (!known.message.empty())
      fprintf(stderr, "%s\n", known.message.c_str());
    return known.code;
  }
}

void watchdog::end_job(const failure &error) {
  of_all().reported = true;
  fprintf(stderr, "%s: %s\n", name_.c_str(), error.message.c_str());
  fflush(stderr);
  std::this_thread::sleep_for(time_to_forward);
  ends_job_ = true;
  of_all().code = error.code;
  ranks_.abort(error.code);
}

// Only what a signal handler may call: the name was made before.
void watchdog::on_fatal_signal(int number, siginfo_t *information, void *) {
  for (size_t i = 0; i < std::size(fatal_signals); ++i)
    if (fatal_signals[i] == number)
      sigaction(number, &handlers_before[i], nullptr); // goes on: a core dump, a trace
  if (watchdog *self = of_this_process; self && self->ranks_.size() > 1) {
    self->of_all().reported = true;
    char line[512];
    int length =
        snprintf(line, sizeof line, "%s got signal %d (%s): it was %s, step %lld\n",
                 self->name_.c_str(), number, sigdescr_np(number), name_of(self->own_->what),
                 static_cast<long long>(self->own_->step.load()));
    if (length > 0 && write(STDERR_FILENO, line, static_cast<size_t>(length)) > 0)
      std::this_thread::sleep_for(time_to_forward);
  }
  if (information->si_code <= 0) // sent; a fault comes again by itself
    raise(number);
}

} // namespace trainc
