// SPDX-License-Identifier: Apache-2.0
//
// Three signs of a rank for which the others wait in vain. Its process has ended without a word.
// Its thread no longer counts time: the process is stopped or its machine swaps. Or another waits
// for ranks, much longer than any step took, while it does not and gets no work done
// (signs_of_life.h): it hangs there. A job whose launcher has ended is over too.
#include "runtime/ranks/watchdog.h"

#include "runtime/process/clock.h"
#include "runtime/process/last_words.h"
#include "runtime/process/signs_of_life.h"
#include "runtime/ranks/shared_memory.h"

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
constexpr double shortest_limit = 1; // second: below, a busy host looks stopped
constexpr double heartbeat_seconds = 0.5;
constexpr double steps_of_patience = 5; // ranks of one job do equal work
constexpr int fatal_signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

constexpr const char *network_advice =
    "  the network between the hosts may be down; docs/clusters.md has settings with which mpirun "
    "ends then, too\n";

const char *name_of(activity what) {
  static constexpr const char *names[activity_count] = {
      "starting", "computing", "exchanging gradients", "evaluating", "writing a checkpoint",
      "ending"};
  return names[static_cast<size_t>(what)];
}

} // namespace

struct watchdog::page {
  uint64_t not_ours; // shared_memory.h
  int rank, process;
  std::atomic<activity> what;
  std::atomic<int64_t> step;
  std::atomic<double> waits_since;  // seconds_now() when it began to wait for ranks; 0: it does not
  std::atomic<double> worked;       // when it last got something done, or waited
  std::atomic<double> longest_step; // seconds, so far
  std::atomic<double> alive;        // last sign of the thread
  char host[64];
  // On the first rank, for all: somebody says why the job ends; has said it, and this is its code.
  std::atomic<bool> reported;
  std::atomic<int> code;
  char said[512]; // the first line of it
};

// What the first rank of a host says of its ranks. Hosts have clocks of their own, so times are
// ages.
struct watchdog::host_message {
  struct rank_state {
    int rank, process;
    activity what;
    int64_t step;
    double waiting, idle, silent, longest_step; // seconds; waiting -1: it does not
    char host[64];
  };
  int count;
  bool over; // and the host says no more
  rank_state ranks[1];
  static size_t bytes(int64_t ranks) {
    return sizeof(host_message) + static_cast<size_t>(ranks) * sizeof(rank_state);
  }
};

static watchdog *of_this_process = nullptr; // for the signal handler
static struct sigaction handlers_before[std::size(fatal_signals)];

watchdog::watchdog(communicator &ranks, bool watches, double seconds)
    : ranks_(ranks), limit_(seconds > 0 ? std::max(seconds, shortest_limit)
                                        : std::numeric_limits<double>::infinity()),
      name_(ranks.size() > 1 ? rank_name(ranks.rank(), getpid())
                             : format_text("process %d", getpid())),
      alone_(new page()), own_(alone_.get()) {
  static_assert(sizeof(page) <= page_bytes);
  began_ = seconds_now();
  of_this_process = this;
  for (size_t i = 0; i < std::size(fatal_signals); ++i) {
    struct sigaction action = {};
    action.sa_sigaction = on_fatal_signal;
    action.sa_flags = SA_SIGINFO;
    sigaction(fatal_signals[i], &action, &handlers_before[i]);
  }
  if (!watches || ranks.size() < 2)
    return;
  for (char *file : share_with_host("trainc-watchdog", page_bytes))
    pages_.push_back(reinterpret_cast<page *>(file));
  if (pages_.empty())
    pages_.push_back(own_); // sees no other of its host
  else
    own_ = pages_[static_cast<size_t>(ranks.rank_on_host())];
  own_->rank = ranks.rank();
  own_->process = getpid();
  snprintf(own_->host, sizeof own_->host, "%s", host_name().c_str());
  own_->alive = own_->worked = seconds_now();
  ranks.barrier(); // every page says whose it is
  listen_to_hosts();
  try {
    ranks.together([&] { start(); });
  } catch (...) { // a rank has no thread, others may have theirs
    end();
    throw;
  }
}

void watchdog::start() {
  for (page *each : pages_) {
    // A kernel before 5.3 has no such descriptors (-1): there a dead rank is a silent one.
    auto process = each == own_ ? -1 : static_cast<int>(syscall(SYS_pidfd_open, each->process, 0));
    processes_.push_back({process, POLLIN, 0});
  }
  thread_ = std::thread([this] { watch(); });
  pthread_setname_np(thread_.native_handle(), "watchdog");
}

watchdog::~watchdog() { end(); }

void watchdog::end() {
  of_this_process = nullptr;
  own_->what = activity::end;
  stops_ = true;
  if (thread_.joinable())
    thread_.join();
  if (!others_.empty())
    tell_hosts(/*over=*/true);
  hosts_.reset();
  for (const pollfd &process : processes_)
    if (process.fd >= 0)
      close(process.fd);
  for (page *each : pages_)
    if (each != alone_.get())
      munmap(each, page_bytes);
}

void watchdog::begin_step(int64_t step) {
  begin_batch();
  own_->step = step;
}

void watchdog::begin_batch() {
  double time = seconds_now();
  note_work();
  if (step_began_ > 0)
    own_->longest_step = std::max(own_->longest_step.load(), time - step_began_);
  step_began_ = time;
}

void watchdog::now(activity what) {
  double time = seconds_now();
  spent_[static_cast<size_t>(own_->what.load())] += time - began_;
  began_ = time;
  own_->what = what;
  note_work();
  own_signs.waits_since = what == activity::exchanging ? time : 0;
}

const watchdog::page *watchdog::dead() const {
  for (size_t i = 0; i < processes_.size(); ++i)
    if ((processes_[i].revents & POLLIN) && pages_[i]->what != activity::end)
      return pages_[i];
  return nullptr;
}

// The pages that this rank sees: those of the host, then others.
template <typename See> void watchdog::each_page(const See &see) const {
  for (const page *each : pages_)
    see(*each);
  for (const auto &host : others_)
    for (const auto &each : host)
      see(*each);
}

// Where the network took the last messages, others may have heard all and ended.
bool watchdog::is_left_alone(double time) const {
  const double since = own_->waits_since;
  if (since <= 0 || time - since < std::max(limit_, steps_of_patience * own_->longest_step))
    return false;
  int others = 0, ended = 0;
  each_page([&](const page &other) {
    others += &other != own_;
    ended += &other != own_ && other.what == activity::end;
  });
  return others > 0 && ended == others;
}

const watchdog::page *watchdog::silent(double time) const {
  const page *found = nullptr;
  each_page([&](const page &other) {
    if (!found && &other != own_ && other.what != activity::end && time - other.alive > limit_)
      found = &other;
  });
  return found;
}

// The rank that has not waited and got nothing done for longest while another waits.
const watchdog::page *watchdog::awaited(double time) const {
  const page *found = nullptr;
  bool is_waited_for = false;
  each_page([&](const page &each) {
    if (each.what == activity::end || time - each.alive >= 2 * heartbeat_seconds)
      return; // what is known of one that gives no sign is old
    const double patience = std::max(limit_, steps_of_patience * each.longest_step);
    if (const double since = each.waits_since; since > 0)
      is_waited_for |= time - since >= patience;
    else if (time - each.worked >= patience && (!found || each.worked < found->worked))
      found = &each;
  });
  return is_waited_for ? found : nullptr;
}

// ---- other hosts

void watchdog::listen_to_hosts() {
  int64_t most = 0;
  std::vector<int64_t> counts(static_cast<size_t>(ranks_.size()));
  auto mine = static_cast<int64_t>(pages_.size());
  ranks_.gather(&mine, sizeof mine, counts.data());
  for (int64_t count : counts)
    most = std::max(most, count);
  hosts_.emplace(ranks_, host_message::bytes(most));
  others_.resize(static_cast<size_t>(hosts_->hosts()));
  auto is_unknown = [](const auto &host) { return host.empty(); };
  while (std::any_of(others_.begin(), others_.end(), is_unknown)) {
    tell_hosts(/*over=*/false);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void watchdog::tell_hosts(bool over) {
  double time = seconds_now();
  auto &message = *reinterpret_cast<host_message *>(hosts_->mine());
  message.count = static_cast<int>(pages_.size());
  message.over = over;
  for (size_t i = 0; i < pages_.size(); ++i) {
    const page &from = *pages_[i];
    host_message::rank_state &to = message.ranks[i];
    const double since = from.waits_since;
    to = {from.rank,
          from.process,
          from.what,
          from.step,
          since > 0 ? time - since : -1,
          time - from.worked,
          time - from.alive,
          from.longest_step,
          {}};
    memcpy(to.host, from.host, sizeof to.host);
  }
  if (!over) // else it goes with the end of the heartbeat
    hosts_->beat([this](int host, const char *said) {
      hear(host, *reinterpret_cast<const host_message *>(said));
    });
}

// What has been said stays until more is heard, and ages.
void watchdog::hear(int host, const host_message &message) {
  auto &known = others_[static_cast<size_t>(host)];
  if (known.empty())
    for (int i = 0; i < message.count; ++i)
      known.push_back(std::make_unique<page>());
  double time = seconds_now();
  for (size_t i = 0; i < known.size(); ++i) {
    const host_message::rank_state &from = message.ranks[i];
    page &to = *known[i];
    to.rank = from.rank;
    to.process = from.process;
    to.what = message.over ? activity::end : from.what;
    to.step = from.step;
    to.waits_since = from.waiting >= 0 ? time - from.waiting : 0;
    to.worked = time - from.idle;
    to.alive = time - from.silent;
    to.longest_step = from.longest_step;
    memcpy(to.host, from.host, sizeof to.host);
  }
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

// What this process says of itself, for the others.
void watchdog::look_at_own(double time) {
  const double waits_since = own_signs.waits_since;
  if (const uint64_t work = own_signs.work; work != work_seen_ || waits_since > 0) {
    work_seen_ = work;
    own_->worked = time;
  }
  own_->waits_since = waits_since;
  own_->alive = time;
}

void watchdog::watch() {
  const char *advice = "  try: --hang-timeout SECONDS where a rank may be silent for longer\n";
  double last = seconds_now(), judges_from = 0, told = 0;
  while (!stops_) {
    wait_for_deaths(interval);
    double time = seconds_now();
    look_at_own(time);
    if (!others_.empty() && time - told >= heartbeat_seconds) {
      told = time;
      tell_hosts(/*over=*/false);
    }
    if (int code = of_all().code; code != 0 && !ends_job_) {
      say_last_words(code, of_all().said);
      std::this_thread::sleep_for(time_to_forward);
      _exit(code);
    }
    if (getppid() != launcher_)
      end_job(name_ + " ends: its launcher has ended\n");
    if (const page *culprit = dead())
      end_job(*culprit, "has died", "");
    if (time - last > limit_ / 2) // we were stopped ourselves, and perhaps others: they get time
      judges_from = time + limit_;
    last = time;
    if (time < judges_from || own_->what == activity::end)
      continue;
    if (const page *culprit = silent(time))
      end_job(*culprit, format_text("has not responded for %.0f s", time - culprit->alive), advice);
    if (is_left_alone(time))
      end_job(name_ + " waits for ranks that have ended, or can be heard no more\n" +
              network_advice);
    if (const page *culprit = awaited(time); culprit && (culprit != own_ || !others_.empty()))
      end_job(*culprit,
              format_text("has made no progress for %.0f s while other ranks wait for it",
                          time - culprit->worked),
              advice);
  }
}

watchdog::page &watchdog::of_all() { return pages_.empty() ? *alone_ : *pages_.front(); }

void watchdog::end_job(const page &culprit, const std::string &what_happened, const char *advice) {
  const bool is_elsewhere = strcmp(culprit.host, own_->host) != 0;
  end_job(format_text("%s %s: it was %s, step %lld\n%s%s",
                      rank_name(culprit.rank, culprit.process, culprit.host).c_str(),
                      what_happened.c_str(), name_of(culprit.what),
                      static_cast<long long>(culprit.step.load()), advice,
                      is_elsewhere ? network_advice : ""));
}

// Where another rank of the host has said something before, that is the reason.
void watchdog::end_job(const std::string &message) {
  if (!of_all().reported.exchange(true)) {
    note_said(message.c_str());
    fputs(message.c_str(), stderr);
    fflush(stderr);
  }
  say_last_words(exit_stalled, of_all().said[0] != 0 ? of_all().said : message.c_str());
  std::this_thread::sleep_for(time_to_forward); // the launcher takes the code of the first to end
  _exit(exit_stalled);
}

// For the last words of the first rank, which may be another process.
void watchdog::note_said(const char *message) {
  snprintf(of_all().said, sizeof(page::said), "%.*s", static_cast<int>(strcspn(message, "\n")),
           message);
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
  note_said((name_ + ": " + error.message).c_str());
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
  if (watchdog *self = of_this_process) {
    self->of_all().reported = true;
    char line[512];
    int length =
        snprintf(line, sizeof line, "%s got signal %d (%s): it was %s, step %lld\n",
                 self->name_.c_str(), number, sigdescr_np(number), name_of(self->own_->what),
                 static_cast<long long>(self->own_->step.load()));
    const bool is_said = length > 0 && write(STDERR_FILENO, line, static_cast<size_t>(length)) > 0;
    self->note_said(line);
    say_last_words(128 + number, line);
    if (is_said && self->ranks_.size() > 1)
      std::this_thread::sleep_for(time_to_forward);
  }
  if (information->si_code <= 0) // sent; a fault comes again by itself
    raise(number);
}

} // namespace trainc
