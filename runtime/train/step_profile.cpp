// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_profile.h"

#include "runtime/failure.h"
#include "runtime/files/run_files.h"
#include "runtime/observe/step_plan.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

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
                           int64_t first, int64_t last, std::string folder)
    : run_(run), output_(output), feed_(feed), saves_(saves), steps_(*run.options.profile_steps),
      folder_(std::move(folder)), trace_(run.ranks), times_(run.target, &trace_), first_(first),
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
  if (taken_.end == taken_.begin) {
    trace_.start();
    taken_.begin = step;
  }
  taken_.end = step + 1;
  saves_.record(&trace_);
  feed_.record(&trace_);
  times_.begin_step(step);
  return times_;
}

void step_profile::end_step() {
  times_.end_step();
  feed_.record(nullptr);
  if (taken_.end == taken_.begin + 1)
    trace_.make_room(1, std::min(steps_.end, last_ + 1) - taken_.end);
}

void step_profile::write(int64_t last) {
  if (is_written_)
    return;
  if (taken_.end == taken_.begin)
    return warn_of_none(last);
  is_written_ = true;
  run_.watch.now(activity::saving);
  saves_.record(nullptr);
  const double rate = product_rate(run_.target);
  const std::string &given = run_.options.profile_file;
  try {
    write_file(given.empty() ? trace_of(folder_, taken_.begin, taken_.end) : given, rate);
  } catch (const failure &error) {
    output_.warn(error.message + "; training goes on without the trace");
  }
}

void step_profile::write_file(const std::string &path, double product_rate) {
  planned_steps plan;
  std::optional<trace_file> file;
  trace_.gather(run_.prog, [&](rank_trace trace) {
    if (!file) {
      plan = read_planned_steps(run_.folder + "/plan", /*has_details=*/true,
                                [&](const std::string &text) { output_.warn(text); });
      begin_folder(path);
      file.emplace(path, plan, product_rate);
    }
    file->add(std::move(trace));
  });
  if (!file) // of another rank
    return;
  file->publish();
  output_.shown.finish();
  printf("trace: %s\n", path.c_str());
}

// Where it is what the run keeps. That it cannot be made is what the file says again.
void step_profile::begin_folder(const std::string &path) const {
  std::error_code ignored;
  if (run_.options.profile_file.empty())
    std::filesystem::create_directory(std::filesystem::path(path).parent_path(), ignored);
}

} // namespace trainc
