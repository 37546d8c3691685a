// SPDX-License-Identifier: Apache-2.0
//
// Shows on a terminal which stage runs and how long each took. A pipe sees nothing.
#pragma once

#include <chrono>
#include <string>

namespace trainc {

class StageClock {
public:
  explicit StageClock(bool quiet);
  void begin(const std::string &stage); // ends the one before
  void finish();                        // ends the last one and prints the total

private:
  void end();
  using Clock = std::chrono::steady_clock;
  bool shown;
  std::string current;
  Clock::time_point start, stageStart;
};

} // namespace trainc
