// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_times.h"

#include "runtime/process/clock.h"

#include <algorithm>

namespace trainc {

// After what was queued.
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

void step_times::begin_step(int64_t number) {
  number_ = number;
  whole_began_ = now();
  rest_began_ = whole_began_.seconds;
}

void step_times::end_step() {
  const instant end = now();
  add(whole_, whole_began_, end);
  const exchange_times last = target_.last_exchange().since(whole_began_.seconds);
  exchanges_.begin += last.begin;
  exchanges_.end += last.end;
  exchanges_.exposed += last.exposed;
  exchanges_.adding += last.adding;
  exchanges_.beside += last.beside;
  if (!trace_)
    return;
  trace_->rest(rest_began_, end.seconds);
  trace_->training_step(number_, whole_began_.seconds, end.seconds);
  if (last.end > 0)
    trace_->exchange(target_.last_exchange());
}

void step_times::enter(const char *function) {
  function_ = &functions_[function];
  ++function_->times;
  if (trace_)
    trace_->enter(function);
}

void step_times::begin(int step) {
  target_.mark(begun_.size());
  begun_.push_back(step);
}

// Also between steps of the function. A device goes from one to the next without waiting for the
// host.
void step_times::leave() {
  target_.mark(begun_.size());
  target_.finish();
  for (size_t i = 0; i < begun_.size(); ++i) {
    const auto step = static_cast<size_t>(begun_[i]);
    const double began = target_.marked(i), ended = target_.marked(i + 1);
    function_->steps.resize(std::max(function_->steps.size(), step + 1));
    function_->steps[step] += ended - began;
    if (trace_)
      trace_->plan_step(begun_[i], began, ended);
  }
  begun_.clear();
}

void step_times::begins(const stage_action &action) {
  const instant at = now();
  end_action(at);
  action_ = &actions_[{action.kind, action.chunk, action.boundary}];
  current_ = action;
  action_began_ = at;
}

void step_times::ends() { end_action(now()); }

// The action that went on, or what came before the first one.
void step_times::end_action(const instant &at) {
  if (action_)
    add(*action_, action_began_, at);
  if (trace_ && action_)
    trace_->action(current_, action_began_.seconds, at.seconds, at.waited - action_began_.waited);
  else if (trace_)
    trace_->rest(rest_began_, at.seconds);
  rest_began_ = at.seconds;
  action_ = nullptr;
}

} // namespace trainc
