// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_profile.h"

#include "runtime/failure.h"
#include "runtime/observe/step_plan.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace trainc {
namespace {

// With memory of its own: training goes on. 0 where there is none.
double product_rate(device &target) {
  constexpr size_t alignment = 64, bytes = 12 << 20; // matrices of 1024 x 1024
  const std::unique_ptr<void, void (*)(void *)> memory(std::aligned_alloc(alignment, bytes), free);
  return memory ? target.product_rate(static_cast<char *>(memory.get()), bytes) : 0;
}

} // namespace

step_profile::step_profile(run &run, run_output &output, batch_feed &feed, save_schedule &saves,
                           int64_t first, int64_t last, std::string path)
    : run_(run), output_(output), feed_(feed), saves_(saves), steps_(*run.options.profile_steps),
      path_(std::move(path)), trace_(run.ranks), times_(run.target, &trace_), first_(first),
      last_(last) {
  if (steps_.end <= first + 1 || steps_.begin > last)
    warn_of_none(last);
}

void step_profile::warn_of_none(int64_t last) {
  is_written_ = true;
  output_.warn(format_text("option --profile-steps: no trace is written: none of the steps "
                           "%" PRId64 " to %" PRId64 " is among those taken, %" PRId64
                           " to %" PRId64,
                           steps_.begin, steps_.end - 1, first_ + 1, last));
}

step_times &step_profile::begin_step(int64_t step) {
  if (taken_++ == 0)
    trace_.start(1, std::min(steps_.end, last_ + 1) - step);
  saves_.record(&trace_);
  feed_.record(&trace_);
  times_.begin_step(step);
  return times_;
}

void step_profile::end_step() {
  times_.end_step();
  feed_.record(nullptr);
}

void step_profile::write(int64_t last) {
  if (is_written_)
    return;
  if (taken_ == 0)
    return warn_of_none(last);
  is_written_ = true;
  run_.watch.now(activity::saving);
  saves_.record(nullptr);
  std::vector<rank_trace> traces = trace_.gather(run_.prog);
  const double rate = product_rate(run_.target);
  if (!run_.is_first())
    return;
  try {
    write_file(std::move(traces), rate);
  } catch (const failure &error) {
    output_.warn(error.message + "; training goes on without the trace");
  }
}

void step_profile::write_file(std::vector<rank_trace> traces, double product_rate) const {
  const std::string folder = run_.folder + "/plan";
  planned_steps plan = read_step_words(folder + "/steps.txt");
  for (const std::string &path : add_details(plan, folder))
    output_.warn(path + ": cannot be used: the trace lacks what it says");
  if (run_.options.profile_file.empty()) { // what the run keeps
    std::error_code ignored;               // which the file meets again
    std::filesystem::create_directory(std::filesystem::path(path_).parent_path(), ignored);
  }
  trace_file file(path_, plan, product_rate);
  for (rank_trace &trace : traces)
    file.add(std::move(trace));
  file.publish();
  output_.shown.finish();
  printf("trace: %s\n", path_.c_str());
}

} // namespace trainc
