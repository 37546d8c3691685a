// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/start_checks.h"
#include "runtime/byte_text.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/files/run_files.h"
#include "runtime/options/restored_options.h"
#include "runtime/run/step_log.h"

#include <cinttypes>
#include <cmath>

namespace trainc {

// What is too little for `count` checkpoints in the folder of a run; empty where they fit.
static std::string lacking_space(const std::string &folder, const program &program, int ranks,
                                 int64_t count) {
  const int64_t needed = count * checkpoint_writer::snapshot_bytes(program, /*ranks=*/1),
                files = count * (ranks + 2); // each its folder and the manifest
  const std::string place = existing_part(folder);
  const std::optional<int64_t> bytes = available_bytes(place), nodes = available_files(place);
  const std::string begin =
      folder + (count == 1 ? ": a checkpoint needs "
                           : format_text(": %" PRId64 " checkpoints, those of --keep "
                                         "and the one that is written, need ",
                                         count));
  if (bytes && *bytes < needed)
    return begin + byte_text(needed) + ", " + byte_text(*bytes) + " are available";
  if (nodes && *nodes < files)
    return begin + format_text("%" PRId64 " files, and the file system has room for %" PRId64
                               " (inodes, df -i)",
                               files, *nodes);
  return "";
}

// One more checkpoint must fit beside those that are there; of a new run that says how many it
// writes those that stay, too.
void check_space(const run &run, const run_plan &plan) {
  const trainer_options &options = run.options;
  const int ranks = run.ranks.size();
  const int64_t largest = checkpoint_writer::snapshot_bytes(run.prog, ranks);
  const std::optional<int64_t> limit = file_size_limit();
  std::string text = lacking_space(plan.choice.folder, run.prog, ranks, 1),
              advice = "\n  try: free space, --run DIR elsewhere, or --no-checkpoints";
  if (text.empty() && limit && *limit < largest) {
    text = plan.choice.folder + ": a checkpoint needs a file of " + byte_text(largest) +
           ", and one may have " + byte_text(*limit) + " (ulimit -f)";
    advice = "\n  try: a larger ulimit -f, or --no-checkpoints";
  }
  if (plan.is_dry && !text.empty())
    throw failure(exit_disk, text + advice);
  if (text.empty() && !plan.choice.goes_on() && options.keep.newest > 0 &&
      options.checkpoint_every.of == period::steps && options.checkpoint_every.count > 0) {
    const double saves =
        std::ceil(static_cast<double>(plan.last - plan.first) / options.checkpoint_every.count);
    text = lacking_space(plan.choice.folder, run.prog, ranks,
                         std::min(options.keep.newest + 1, static_cast<int64_t>(saves)));
  }
  if (!text.empty())
    run.warn(text);
}

void warn_of_rate(const run &run, const run_plan &plan, const rate_schedule &schedule,
                  const loader &data) {
  const trainer_options &options = run.options;
  constexpr double least = 1e-3; // of the rate
  const std::string before = plan.choice.configuration();
  if (!plan.has_own_checkpoint || before.empty() || is_schedule_given(options) ||
      !schedule_reads(options.schedule, "schedule-steps"))
    return;
  const trainer_options kept = kept_options(run.prog, before, run.table);
  const rate_schedule was = schedule_of(kept, last_step_of(kept, plan, data));
  const int64_t next = plan.first + 1;
  const double rate = schedule(next), rate_before = was(next);
  if (std::abs(rate - rate_before) > least * std::max(rate, rate_before))
    run.warn(format_text("the learning rate of step %" PRId64 " is %g, and was %g: the schedule "
                         "is of %" PRId64 " steps, and was of %" PRId64
                         "\n  try: --schedule-steps %" PRId64 " to leave it as it was",
                         next, rate, rate_before, schedule.total_steps, was.total_steps,
                         was.total_steps));
}

void warn_of_links(const run &run, const std::string &folder) {
  const std::vector<std::string> links = linked_checkpoints(folder);
  if (links.empty())
    return;
  std::string names;
  for (const std::string &link : links)
    names += (names.empty() ? "" : ", ") + link;
  run.warn(folder + ": " + names + (links.size() == 1 ? ": is a link" : ": are links") +
           ", which --keep neither counts nor removes");
}

// Of the log, those before the run went on included.
static int64_t steps_between_lines(const run &run, const run_plan &plan) {
  int64_t before = 1;
  if (const std::string configuration = plan.choice.configuration(); !configuration.empty())
    before = kept_options(run.prog, configuration, run.table).log_every;
  return std::max(before, run.options.log_every);
}

void warn_of_log(const run &run, const run_plan &plan, const step_log &log) {
  const std::string path = log_of(plan.choice.folder);
  if (!log.damaged().empty())
    run.warn(path + ": is damaged; the old file is kept as " + log.damaged() +
             ", and the log goes on with the lines that can be read");
  else if (plan.has_own_checkpoint && !plan.is_dry && run.is_first() &&
           log.last_step() + steps_between_lines(run, plan) <= plan.first)
    run.warn(path + format_text(": has no line of the steps after %" PRId64
                                ", and the run is at %" PRId64
                                ": they were removed, or could not be written",
                                log.last_step(), plan.first));
}

} // namespace trainc
