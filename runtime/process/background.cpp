// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/background.h"

namespace trainc {

background_worker::background_worker() : thread_([this] { work(); }) {}

background_worker::~background_worker() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void background_worker::start(job work, void *argument) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
  job_ = work;
  argument_ = argument;
  changed_.notify_all();
}

bool background_worker::is_busy() const {
  std::lock_guard lock(mutex_);
  return job_;
}

void background_worker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
}

void background_worker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return job_ || ends_; });
    if (!job_)
      return;
    lock.unlock();
    job_(argument_);
    lock.lock();
    job_ = nullptr;
    changed_.notify_all();
  }
}

} // namespace trainc
