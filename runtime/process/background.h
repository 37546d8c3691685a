// SPDX-License-Identifier: Apache-2.0
//
// A thread that does one job at a time beside the one that started it. Nothing is allocated
// after the constructor.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace trainc {

class background_worker {
public:
  background_worker();
  ~background_worker(); // once the job at hand is done
  background_worker(const background_worker &) = delete;
  background_worker &operator=(const background_worker &) = delete;

  using job = void (*)(void *);
  // Waits for the job before. What it wrote may be read after `wait`, or when it is not busy.
  void start(job work, void *argument);
  bool is_busy() const;
  void wait();

private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  job job_ = nullptr; // null: idle
  void *argument_ = nullptr;
  bool ends_ = false;
  std::thread thread_; // last: it uses the others
};

} // namespace trainc
