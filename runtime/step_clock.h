// SPDX-License-Identifier: Apache-2.0
//
// Told which step of which entry function begins: what emitted functions call where somebody
// measures them (`profile`). Emitted code needs no function of the runtime for it.
#pragma once

namespace trainc {

class step_clock {
public:
  virtual ~step_clock() = default;
  virtual void enter(const char *function) = 0;
  virtual void begin(int step) = 0; // its number in plan/steps.txt
  virtual void leave() = 0;         // the function
};

} // namespace trainc
