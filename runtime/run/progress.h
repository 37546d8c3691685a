// SPDX-License-Identifier: Apache-2.0
//
// What a person sees of a run: a progress bar with time left on a terminal, plain
// lines elsewhere, one in ten seconds or every so many steps.
#pragma once

#include "runtime/run/step_log.h"

namespace trainc {

class progress {
public:
  // Steps first + 1 to last will follow. A silent one prints nothing. `display_every`: steps
  // between two lines, on a terminal too; 0: where there is no bar, some seconds.
  progress(bool silent, int64_t first, int64_t last, int64_t display_every);

  ~progress() { finish(); }
  progress(const progress &) = delete;
  progress &operator=(const progress &) = delete;

  // `is_evaluated`: the step's line stays open for what held_out says of it.
  void step(const step_record &record, bool is_evaluated);
  void held_out(int64_t step, const std::vector<named_number> &results);
  // What comes next has a line of its own, which does not mix with the bar.
  void finish();

private:
  bool line_is_due(int64_t step, double now) const;
  // The first steps are no measure of the others.
  bool knows_time_left(int64_t step) const;
  void line(const step_record &record, bool stays_open);
  void bar(const step_record &record);

  bool silent_, terminal_ = false, bar_shown_ = false, line_is_open_ = false;
  int width_ = 80;
  int64_t first_, last_, display_every_;
  double smoothed_seconds_ = 0, last_bar_ = 0, last_line_ = 0;
};

} // namespace trainc
