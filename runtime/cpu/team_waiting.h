// SPDX-License-Identifier: Apache-2.0
//
// How the threads of a step wait for each other. libgomp's spin for milliseconds at the end of a
// loop, the fastest while each has a core. Beside another busy process the thread that all wait for
// may have none, and those that spin take what it needs. libgomp hardly spins where a process has
// more threads than cores (GOMP_SPINCOUNT in its manual): while threads wait for cores, spare ones
// that sleep make it so.
#pragma once

#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <vector>

namespace trainc {

// Whether threads are to sleep rather than spin, by the time that they were ready to run and did
// not, as beside other load. While they sleep that tells nothing: they spin again from time to
// time.
class wait_choice {
public:
  bool is_due(double now) const { return now >= next_; }
  // Of a clock and of the team's threads until now, in seconds.
  bool sleeps(double now, double delay);

private:
  bool sleeps_ = false;
  double next_ = 0, began_ = 0, delay_ = 0; // of a look, of the time looked at
  double rest_ = 0;                         // the next one's seconds of sleep
};

// Takes no memory after the first step: spare threads are started and ended then, and the C library
// keeps their stacks for the next ones.
class team_waiting {
public:
  explicit team_waiting(int threads);
  ~team_waiting();
  team_waiting(const team_waiting &) = delete;
  team_waiting &operator=(const team_waiting &) = delete;

  void look(); // between steps

private:
  double delay() const;
  bool can_start();
  void add_spares();
  void end_spares();
  static void *own_spares(void *self);

  wait_choice choice_;
  std::vector<int> schedstats_;   // files of the team's threads; -1: not there
  std::vector<pthread_t> probes_; // room for one spare more than there are
  int spares_ = 0;                // 0: the threads wait as the environment says
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_rehearsed_ = false, ends_ = false, has_spares_ = false;
  pthread_t owner_ = {}; // of the spares
};

} // namespace trainc
