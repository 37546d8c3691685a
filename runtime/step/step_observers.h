// SPDX-License-Identifier: Apache-2.0
//
// Passes on to all who look at a step what each would be told by itself: a device and a step have
// one observer.
#pragma once

#include "runtime/step/gradient_step.h"

#include <vector>

namespace trainc {

class step_observers final : public step_clock, public action_observer {
public:
  // A step_clock and action_observer. Allocates at first.
  template <typename Observer> void add(Observer &observer) {
    clocks_.push_back(&observer);
    actions_.push_back(&observer);
  }

  // Around a step. Where there is none, nothing is observed.
  void attach(device &target, gradient_step &gradient) {
    if (clocks_.empty())
      return;
    target.observe(this);
    gradient.observe(this);
  }
  // Forgets them all.
  void detach(device &target, gradient_step &gradient) {
    if (clocks_.empty())
      return;
    target.observe(nullptr);
    gradient.observe(nullptr);
    clocks_.clear();
    actions_.clear();
  }

  void uses(const arenas &memory) override {
    for (step_clock *one : clocks_)
      one->uses(memory);
  }
  void enter(const char *function) override {
    for (step_clock *one : clocks_)
      one->enter(function);
  }
  void begin(int step) override {
    for (step_clock *one : clocks_)
      one->begin(step);
  }
  void leave() override {
    for (step_clock *one : clocks_)
      one->leave();
  }
  void begins(const stage_action &action) override {
    for (action_observer *one : actions_)
      one->begins(action);
  }
  void ends() override {
    for (action_observer *one : actions_)
      one->ends();
  }

private:
  std::vector<step_clock *> clocks_;
  std::vector<action_observer *> actions_;
};

} // namespace trainc
