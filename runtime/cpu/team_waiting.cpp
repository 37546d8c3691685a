// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/team_waiting.h"

#include "runtime/process/clock.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <malloc.h>
#include <omp.h>
#include <string>
#include <unistd.h>

namespace trainc {
namespace {

constexpr double look_seconds = 0.2;
constexpr double most_delay = 0.1;               // seconds a second, of all threads
constexpr double least_rest = 1, most_rest = 32; // seconds
constexpr int most_spares = 4; // for each thread of the team: ranks of a host share its processes

// Of one thread, in nanoseconds: how long it was ready and did not run; 0 where the kernel does not
// say.
double delay_in(int schedstat) {
  char text[64] = {};
  double ran = 0, delayed = 0;
  if (pread(schedstat, text, sizeof text - 1, 0) > 0)
    sscanf(text, "%lf %lf", &ran, &delayed);
  return delayed;
}

void *wait_for(void *lock) {
  std::lock_guard waits(*static_cast<std::mutex *>(lock));
  return nullptr;
}

} // namespace

bool wait_choice::sleeps(double now, double delay) {
  const bool is_disturbed = !sleeps_ && began_ > 0 && delay - delay_ > most_delay * (now - began_);
  if (!sleeps_)
    rest_ = is_disturbed ? std::clamp(2 * rest_, least_rest, most_rest) : 0;
  sleeps_ = is_disturbed;
  next_ = now + (sleeps_ ? rest_ : look_seconds);
  began_ = now;
  delay_ = delay;
  return sleeps_;
}

team_waiting::team_waiting(int threads) {
  const int needed = omp_get_num_procs() - threads + 1;
  const bool is_told = getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT");
  if (threads == 1 || is_told || needed <= 0 || needed > most_spares * threads)
    return;
  spares_ = needed;
  probes_.resize(static_cast<size_t>(spares_) + 1);
  schedstats_.resize(static_cast<size_t>(threads));
#pragma omp parallel num_threads(threads)
  schedstats_[static_cast<size_t>(omp_get_thread_num())] = open(
      ("/proc/self/task/" + std::to_string(gettid()) + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC);
}

team_waiting::~team_waiting() {
  end_spares();
  for (int file : schedstats_)
    if (file >= 0)
      close(file);
}

double team_waiting::delay() const {
  double nanoseconds = 0;
  for (int file : schedstats_)
    nanoseconds += delay_in(file);
  return nanoseconds * 1e-9;
}

// libgomp ends the program where it gets no thread.
bool team_waiting::can_start() {
  std::mutex all_there;
  size_t started = 0;
  {
    std::lock_guard lock(all_there);
    while (started < probes_.size() &&
           pthread_create(&probes_[started], nullptr, wait_for, &all_there) == 0)
      ++started;
  }
  for (size_t i = 0; i < started; ++i)
    pthread_join(probes_[i], nullptr);
  return started == probes_.size();
}

void team_waiting::look() {
  if (spares_ == 0)
    return;
  if (!is_rehearsed_) { // the first step is done, so every lasting thread has its stack
    is_rehearsed_ = true;
    mallopt(M_ARENA_MAX, 1); // further threads share what is there
    add_spares();            // what stacks and libgomp take stays with the process
    end_spares();
  }
  const double now = seconds_now();
  if (!choice_.is_due(now))
    return;
  if (choice_.sleeps(now, delay()))
    add_spares();
  else
    end_spares();
}

void *team_waiting::own_spares(void *self) {
  team_waiting &team = *static_cast<team_waiting *>(self);
#pragma omp parallel num_threads(team.spares_ + 1)
  asm volatile(""); // the compiler drops an empty region
  std::unique_lock lock(team.mutex_);
  team.changed_.wait(lock, [&] { return team.ends_; });
  return nullptr;
}

void team_waiting::add_spares() {
  if (has_spares_ || !can_start())
    return;
  ends_ = false;
  has_spares_ = pthread_create(&owner_, nullptr, own_spares, this) == 0;
}

void team_waiting::end_spares() {
  if (!has_spares_)
    return;
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  pthread_join(owner_, nullptr);
  has_spares_ = false;
}

} // namespace trainc
