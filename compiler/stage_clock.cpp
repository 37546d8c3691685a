// SPDX-License-Identifier: Apache-2.0
//
// Progress of a compilation on a terminal.
#include "compiler/stage_clock.h"
#include <cstdio>
#include <unistd.h>

namespace trainc {

static double secondsSince(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
}

StageClock::StageClock(bool quiet) : shown(!quiet && isatty(STDERR_FILENO)), start(Clock::now()) {}

void StageClock::begin(const std::string &stage) {
  end();
  current = stage;
  stageStart = Clock::now();
  if (shown)
    std::fprintf(stderr, "  %-20s ...", stage.c_str());
}

void StageClock::end() {
  if (shown && !current.empty())
    std::fprintf(stderr, "\r  %-20s %7.3f s\n", current.c_str(), secondsSince(stageStart));
  current.clear();
}

void StageClock::finish() {
  end();
  if (shown)
    std::fprintf(stderr, "  %-20s %7.3f s\n", "total", secondsSince(start));
  shown = false;
}

} // namespace trainc
