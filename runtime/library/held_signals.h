// SPDX-License-Identifier: Apache-2.0
//
// Signals wait while a model computes. Products of oneDNN 2.6 use the stack's pointer for other
// memory, and the frame of a handler that ran then would be written there. Without OpenMP there is
// no oneDNN (runtime/minimal).
#pragma once

#ifdef _OPENMP

#include "runtime/device.h"

#include <csignal>

namespace trainc {

class held_signals {
public:
  // After own_team: its threads hear no signals from here on. A GPU needs no team.
  held_signals() {
    sigset_t held;
    sigfillset(&held);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&held, fault);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
#pragma omp parallel if (current_gpu() < 0)
    pthread_sigmask(SIG_BLOCK, &held, nullptr);
  }
  ~held_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  held_signals(const held_signals &) = delete;
  held_signals &operator=(const held_signals &) = delete;

private:
  sigset_t before_;
};

} // namespace trainc

#else

namespace trainc {

struct held_signals {
  held_signals() {}
};

} // namespace trainc

#endif
