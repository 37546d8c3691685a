// SPDX-License-Identifier: Apache-2.0
//
// Those who look at a training step together: the device and the step have one observer each, which
// tells them all.
#pragma once

#include "runtime/step/gradient_step.h"

#include <vector>

namespace trainc {

class step_observers final : public step_clock, public action_observer {
public:
  // Memory for as many as will look at a step at once.
  step_observers() { parts_.reserve(4); }

  template <typename Observer> void add(Observer &observer) {
    parts_.push_back({&observer, &observer});
  }

  // Around a step. Nothing is told where nobody looks.
  void attach(run &run, gradient_step &gradient) {
    if (parts_.empty())
      return;
    run.target.observe(this);
    gradient.observe(this);
  }
  void detach(run &run, gradient_step &gradient) {
    if (parts_.empty())
      return;
    run.target.observe(nullptr);
    gradient.observe(nullptr);
    parts_.clear();
  }

  void uses(const arenas &memory) override {
    for (part &each : parts_)
      each.clock->uses(memory);
  }
  void enter(const char *function) override {
    for (part &each : parts_)
      each.clock->enter(function);
  }
  void begin(int step) override {
    for (part &each : parts_)
      each.clock->begin(step);
  }
  void leave() override {
    for (part &each : parts_)
      each.clock->leave();
  }
  void begins(const stage_action &action) override {
    for (part &each : parts_)
      each.actions->begins(action);
  }
  void ends() override {
    for (part &each : parts_)
      each.actions->ends();
  }

private:
  struct part {
    step_clock *clock;
    action_observer *actions;
  };
  std::vector<part> parts_;
};

} // namespace trainc
