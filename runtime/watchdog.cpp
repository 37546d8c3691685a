// SPDX-License-Identifier: Apache-2.0
//
// Two signs of a stalled rank. Its thread no longer counts time: the process is stopped or its
// machine swaps. Or all others of the host wait in an exchange, much longer than any step took,
// while it does something else: it hangs there.
#include "runtime/watchdog.h"

#include "runtime/shared_memory.h"
#include "runtime/statistics.h"

#include <algorithm>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr auto interval = std::chrono::milliseconds(100);
constexpr double shortest_limit = 1;    // second: below, a busy host looks stopped
constexpr double steps_of_patience = 5; // ranks of one job do equal work

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
  uint64_t magic;
  int rank, process;
  std::atomic<activity> what;
  std::atomic<int64_t> step;
  std::atomic<double> since;        // seconds_now() at which `what` began
  std::atomic<double> longest_step; // seconds, so far
  std::atomic<double> alive;        // last sign of the thread
  std::atomic<bool> reported;       // of the first rank: somebody has ended the job
};

watchdog::watchdog(communicator &ranks, double seconds) : limit_(seconds) {
  static_assert(sizeof(page) <= page_bytes);
  if (seconds <= 0 || ranks.ranks_on_host() < 2)
    return;
  limit_ = std::max(seconds, shortest_limit);
  std::vector<char *> files = share_with_host("trainc-watchdog", page_bytes);
  for (char *file : files)
    pages_.push_back(reinterpret_cast<page *>(file));
  if (pages_.empty())
    return;
  own_ = pages_[static_cast<size_t>(ranks.rank_on_host())];
  own_->rank = ranks.rank();
  own_->process = getpid();
  own_->alive = own_->since = seconds_now();
  ranks.barrier(); // every page says whose it is
  thread_ = std::thread([this] { watch(); });
}

watchdog::~watchdog() {
  if (!own_)
    return;
  own_->what = activity::end;
  stops_ = true;
  thread_.join();
  for (page *each : pages_)
    munmap(each, page_bytes);
}

void watchdog::begin_step(int64_t step) {
  if (!own_)
    return;
  begin_batch();
  own_->step = step;
}

void watchdog::begin_batch() {
  if (!own_)
    return;
  double time = seconds_now();
  if (step_began_ > 0)
    own_->longest_step = std::max(own_->longest_step.load(), time - step_began_);
  step_began_ = time;
}

void watchdog::now(activity what) {
  if (!own_)
    return;
  own_->since = seconds_now();
  own_->what = what;
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

void watchdog::watch() {
  double last = seconds_now(), judges_from = 0;
  while (!stops_) {
    std::this_thread::sleep_for(interval);
    double time = seconds_now();
    own_->alive = time;
    if (time - last > limit_ / 2) // we were stopped ourselves, and perhaps others: they get time
      judges_from = time + limit_;
    last = time;
    if (time < judges_from || own_->what == activity::end)
      continue;
    if (const page *culprit = silent(time))
      end_job(*culprit, "gives no sign of life", time - culprit->alive);
    if (const page *culprit = awaited(time); culprit && culprit != own_)
      end_job(*culprit, "is waited for by all others of its host", time - culprit->since);
  }
}

void watchdog::end_job(const page &culprit, const char *how, double seconds) const {
  if (!pages_.front()->reported.exchange(true)) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fprintf(stderr,
            "rank %d (process %d on %s) %s since %.0f s: it was %s, step %lld\n"
            "  try: --hang-timeout SECONDS where a rank may be silent for longer\n",
            culprit.rank, culprit.process, host, how, seconds, name_of(culprit.what),
            static_cast<long long>(culprit.step.load()));
    fflush(stderr);
  }
  _exit(exit_stalled);
}

} // namespace trainc
