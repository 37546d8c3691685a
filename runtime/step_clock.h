// SPDX-License-Identifier: Apache-2.0
//
// Told which step begins and in which entry function: what emitted functions call where somebody
// measures or watches them. Emitted code needs no function of the runtime for it.
#pragma once

namespace trainc {

struct arenas;

class step_clock {
public:
  virtual ~step_clock() = default;
  // Called by the device: what the function that it calls next is given.
  virtual void uses(const arenas &) {}
  virtual void enter(const char *function) = 0;
  virtual void begin(int step) = 0; // its number in the plan
  virtual void leave() = 0;         // the step: also before what is of none, and the function
};

} // namespace trainc
