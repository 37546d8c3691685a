// SPDX-License-Identifier: Apache-2.0
//
// What a rank measures of its steps, for `profile`: the seconds of each step of the entry
// functions, of each kind of action and of the rest.
#pragma once

#include "runtime/step/gradient_step.h"
#include "runtime/step/step_trace.h"

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace trainc {

// Sums over all times. Seconds of work are without those in which the rank waited for others of its
// host.
struct measured_seconds {
  int64_t times = 0;
  double working = 0, waiting = 0;
};

struct measured_function {
  int64_t times = 0;
  std::vector<double> steps; // seconds, by number
};

// What does not apply is -1.
struct action_key {
  stage_action_kind kind;
  int chunk, boundary;

  auto operator<=>(const action_key &) const = default;
};
using measured_actions = std::map<action_key, measured_seconds>;

class step_times final : public step_clock, public action_observer {
public:
  // Unless it is null, `trace` records everything that is measured.
  explicit step_times(device &target, step_trace *trace = nullptr)
      : target_(target), trace_(trace) {}

  void begin_step(int64_t number);
  void end_step();
  void forget(); // all that was measured so far

  const std::map<std::string, measured_function> &functions() const { return functions_; }
  const measured_actions &actions() const { return actions_; }
  const measured_seconds &whole_steps() const { return whole_; }
  // Sums over the steps, each since it began.
  const exchange_times &exchanges() const { return exchanges_; }

  void enter(const char *function) override;
  void begin(int step) override;
  void leave() override;
  void begins(const stage_action &action) override;
  void ends() override;

private:
  struct instant {
    double seconds, waited;
  };
  instant now();
  void add(measured_seconds &to, const instant &since, const instant &until) const;
  void end_action(const instant &at);

  device &target_;
  step_trace *trace_;
  std::map<std::string, measured_function> functions_;
  measured_actions actions_;
  measured_seconds whole_;
  exchange_times exchanges_;
  measured_function *function_ = nullptr;
  measured_seconds *action_ = nullptr; // that goes on
  stage_action current_ = {};          // this action
  std::vector<int> begun_;             // steps of the function, each at the mark of its place
  int64_t number_ = 0;                 // of the training step
  instant action_began_ = {}, whole_began_ = {};
  double rest_began_ = 0; // what is of no action
};

} // namespace trainc
