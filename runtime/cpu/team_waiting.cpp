// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/team_waiting.h"

#include "runtime/process/clock.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <omp.h>
#include <string>
#include <system_error>
#include <unistd.h>

namespace trainc {
namespace {

constexpr double look_seconds = 0.2;
constexpr double most_delay = 0.1;               // seconds a second, of all threads
constexpr double least_rest = 1, most_rest = 32; // seconds
constexpr int most_spares = 4; // for each thread of the team: ranks of a host share its processes

// Seconds that threads were ready and did not run; 0 where the kernel does not say.
double delay_of(const std::vector<pid_t> &threads) {
  double nanoseconds = 0;
  for (pid_t thread : threads) {
    double ran = 0, delayed = 0;
    std::ifstream("/proc/self/task/" + std::to_string(thread) + "/schedstat") >> ran >> delayed;
    nanoseconds += delayed;
  }
  return nanoseconds * 1e-9;
}

// libgomp ends the program where it gets no thread.
bool can_start(int count) {
  std::vector<std::thread> threads;
  std::mutex all_there;
  bool can = true;
  {
    std::lock_guard lock(all_there);
    try {
      for (int i = 0; i < count; ++i)
        threads.emplace_back([&] { std::lock_guard waits(all_there); });
    } catch (const std::system_error &) {
      can = false;
    }
  }
  for (std::thread &thread : threads)
    thread.join();
  return can;
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
  team_.resize(static_cast<size_t>(threads));
#pragma omp parallel num_threads(threads)
  team_[static_cast<size_t>(omp_get_thread_num())] = gettid();
}

team_waiting::~team_waiting() { end_spares(); }

void team_waiting::look() {
  if (spares_ == 0)
    return;
  const double now = seconds_now();
  if (!choice_.is_due(now))
    return;
  if (choice_.sleeps(now, delay_of(team_)))
    add_spares();
  else
    end_spares();
}

void team_waiting::add_spares() {
  if (owner_ || !can_start(spares_ + 1))
    return;
  ends_ = false;
  owner_.emplace([this] {
#pragma omp parallel num_threads(spares_ + 1)
    asm volatile(""); // a region without anything in it is not a region
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_; });
  });
}

void team_waiting::end_spares() {
  if (!owner_)
    return;
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  owner_->join();
  owner_.reset();
}

} // namespace trainc
