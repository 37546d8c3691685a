// SPDX-License-Identifier: Apache-2.0
//
// Ends a job whose ranks wait for one that will not come, and says which and why. Each rank of a
// host says in shared memory what it does, and a thread of it that it is alive, whether it waits
// for others and when it last got something done (signs_of_life.h). The thread of another rank that
// sees one die, or neither go on, names it and ends its own process; the launcher takes that as the
// end of the job. The first rank of all hears what those of other hosts do (heartbeat.h), and they
// what those of its host do; the launcher alone sees a death on another host.
#pragma once

#include "runtime/ranks/communicator.h"
#include "runtime/ranks/heartbeat.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace trainc {

enum class activity : int { start, computing, exchanging, evaluating, saving, end };
constexpr size_t activity_count = 6;

class watchdog {
public:
  // `seconds`: how long a rank may be silent, or get nothing done while others wait; 0: for ever,
  // only a death is seen. `watches` is false for commands whose ranks do not wait for each other. A
  // signal that ends this process (SIGSEGV, SIGABRT, ...) is reported like an error, from here on.
  // Collective.
  watchdog(communicator &ranks, bool watches, double seconds);
  ~watchdog();
  watchdog(const watchdog &) = delete;
  watchdog &operator=(const watchdog &) = delete;

  void begin_step(int64_t step);
  void begin_batch(); // of an evaluation, whose time counts like a step's
  // What this rank begins. While `exchanging` it waits for the others.
  void now(activity what);
  // Seconds that this rank has spent so, until the last call of `now`.
  double seconds_of(activity what) const { return spent_[static_cast<size_t>(what)]; }

  // Does the work of a command; returns its exit code, or that of an error, whose message is
  // printed here. One that this rank alone has met ends all ranks at once: what `work` uses and
  // waits for a thread when it is destroyed belongs outside of it.
  int supervise(const std::function<int()> &work);

private:
  void start();
  void end(); // of the watch; no other rank is seen any more
  void end_job(const failure &error);
  struct page; // of one rank, in shared memory
  struct host_message;
  page &of_all(); // what all ranks of the host read and write
  void listen_to_hosts();
  void tell_hosts(bool over);
  void hear(int host, const host_message &message);
  void look_at_own(double time);
  void watch();
  void wait_for_deaths(std::chrono::milliseconds limit);
  template <typename See> void each_page(const See &see) const;
  const page *dead() const;
  const page *silent(double time) const;
  bool is_left_alone(double time) const;
  const page *awaited(double time) const;
  [[noreturn]] void end_job(const page &culprit, const std::string &what_happened,
                            const char *advice);
  [[noreturn]] void end_job(const std::string &message); // said by the first of the host
  void note_said(const char *message);
  static void on_fatal_signal(int number, siginfo_t *information, void *);

  communicator &ranks_;
  const pid_t launcher_ = getppid();
  double limit_;
  std::string name_;            // of this rank
  std::unique_ptr<page> alone_; // where no page is shared
  std::vector<page *> pages_;   // of the host's ranks; empty: there is no other to watch
  std::optional<heartbeat> hosts_;
  std::vector<std::vector<std::unique_ptr<page>>>
      others_;                    // what each host that it hears of has said
  std::vector<pollfd> processes_; // of `pages_`, readable once dead
  page *own_ = nullptr;
  double step_began_ = 0, began_ = 0; // what it does now
  uint64_t work_seen_ = 0;            // of own_signs
  std::array<double, activity_count> spent_ = {};
  std::atomic<bool> stops_ = false, ends_job_ = false;
  std::thread thread_;
};

} // namespace trainc
