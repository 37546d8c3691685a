// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_times.h"

#include "runtime/process/clock.h"

namespace trainc {

// Behind what was queued.
step_times::instant step_times::now() {
  target_.finish();
  return {seconds_now(), target_.seconds_waited()};
}

void step_times::add(measured_seconds &to, const instant &since, const instant &until) const {
  const double waiting = until.waited - since.waited;
  ++to.times;
  to.waiting += waiting;
  to.working += until.seconds - since.seconds - waiting;
}

void step_times::forget() {
  functions_.clear();
  actions_.clear();
  whole_ = {};
  exchanges_ = {};
}

void step_times::begin_step() { whole_began_ = now(); }
void step_times::end_step() {
  add(whole_, whole_began_, now());
  const exchange_times last = target_.last_exchange().since(whole_began_.seconds);
  exchanges_.begin += last.begin;
  exchanges_.end += last.end;
  exchanges_.exposed += last.exposed;
  exchanges_.adding += last.adding;
  exchanges_.beside += last.beside;
}

void step_times::enter(const char *function) {
  function_ = &functions_[function];
  ++function_->times;
  step_ = -1;
}

void step_times::begin(int step) {
  end_of_step();
  step_ = step;
  if (function_->steps.size() <= static_cast<size_t>(step))
    function_->steps.resize(static_cast<size_t>(step) + 1);
  step_began_ = seconds_now();
}

void step_times::leave() {
  end_of_step();
  step_ = -1;
}

void step_times::end_of_step() {
  if (step_ >= 0)
    function_->steps[static_cast<size_t>(step_)] += now().seconds - step_began_;
}

void step_times::begins(const stage_action &action) {
  ends();
  action_ = &actions_[{action.kind, action.chunk, action.boundary}];
  action_began_ = now();
}

void step_times::ends() {
  if (action_)
    add(*action_, action_began_, now());
  action_ = nullptr;
}

} // namespace trainc
