// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/save_schedule.h"

#include "runtime/byte_text.h"
#include "runtime/failure.h"
#include "runtime/files/run_files.h"
#include "runtime/process/clock.h"
#include "runtime/process/signals.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>

namespace trainc {

// What is too little for `count` checkpoints in the folder of a run; empty where they fit.
static std::string lacking_space(const std::string &folder, const program &program, size_t ranks,
                                 int64_t count) {
  const int64_t needed = count * checkpoint_writer::snapshot_bytes(program, /*ranks=*/1),
                files =
                    count * (static_cast<int64_t>(ranks) + 2); // each its folder and the manifest
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
void save_schedule::check_space(const folder_groups &groups) const {
  const trainer_options &options = run_.options;
  const size_t ranks = groups.members().size();
  const int64_t largest = checkpoint_writer::snapshot_bytes(run_.prog, ranks);
  const std::optional<int64_t> limit = file_size_limit();
  std::string text = lacking_space(plan_.choice.folder, run_.prog, ranks, 1),
              advice = "\n  try: free space, --run DIR elsewhere, or --no-checkpoints";
  if (text.empty() && limit && *limit < largest) {
    text = plan_.choice.folder + ": a checkpoint needs a file of " + byte_text(largest) +
           ", and one may have " + byte_text(*limit) + " (ulimit -f)";
    advice = "\n  try: a larger ulimit -f, or --no-checkpoints";
  }
  if (options.dry_run && !text.empty())
    throw failure(exit_disk, text + advice);
  if (text.empty() && !plan_.choice.goes_on() && options.keep.newest > 0 &&
      options.checkpoint_every.of == period::steps && options.checkpoint_every.count > 0) {
    const double saves =
        std::ceil(static_cast<double>(plan_.last - plan_.first) / options.checkpoint_every.count);
    text = lacking_space(plan_.choice.folder, run_.prog, ranks,
                         std::min(options.keep.newest + 1, static_cast<int64_t>(saves)));
  }
  if (!text.empty())
    run_.warn_here(text);
}

void save_schedule::set_up(const folder_groups &groups) {
  if (plan_.has_own_checkpoint)
    saved_step_ = plan_.resumed.step;
  writer_.emplace(run_.prog, run_.places(), run_.target, run_.ranks, groups, real_file_operations(),
                  checkpoints_of(plan_.choice.folder), run_.options.keep, plan_.order,
                  !run_.options.no_background);
}

// Checkpoints in the folder that are links: somebody has them elsewhere.
static void warn_of_links(const run &run, const std::string &folder) {
  const std::vector<std::string> links = linked_checkpoints(folder);
  if (links.empty())
    return;
  run.warn(folder + ": " + joined(links, ", ") +
           (links.size() == 1 ? ": is a link" : ": are links") +
           ", which --keep neither counts nor removes");
}

void save_schedule::open(const std::string &written_by) {
  prunes_next_ = plan_.choice.goes_on(); // superfluous ones may be there
  saved_seconds_ = seconds_now();
  if (!writer_)
    return;
  run_.ranks.together([&] {
    if (run_.is_first())
      warn_of_links(run_, writer_->folder());
  });
  writer_->open(plan_.has_own_checkpoint ? plan_.resumed.sequence : UINT64_MAX, written_by);
}

void save_schedule::prune() {
  if (prunes_next_ && writer_)
    writer_->prune();
  prunes_next_ = false;
}

void save_schedule::save(const run_position &at, bool last) {
  if (!writer_)
    return;
  finish();
  if (at.step == saved_step_)
    return;
  run_.watch.now(activity::saving);
  is_wanted_ = false;
  saved_step_ = at.step;
  writer_->begin(at);
  saved_seconds_ = seconds_now();
  writes_ = true;
  if (last || run_.options.no_background)
    finish(last);
}

void save_schedule::save_again(const run_position &at, bool last) {
  finish();
  saved_step_ = -1;
  save(at, last);
}

void save_schedule::ask_to_wait() const {
  if (writes_ && writer_->is_busy())
    request(writing_request);
}

void save_schedule::proceed(int requests) {
  if (writes_ && !(requests & writing_request) && writer_->proceed())
    finish();
}

void save_schedule::record(step_trace *trace) {
  if (writes_ && trace != trace_)
    tell(seconds_now());
  trace_ = trace;
}

void save_schedule::tell(double now) const {
  if (!trace_)
    return;
  for (const save_work &work : writer_->work())
    if (work.begin > 0)
      trace_->checkpoint(work.what, saved_step_, work.bytes, work.begin,
                         work.end > 0 ? work.end : now);
}

static const char *advice_on(const save_result &result) {
  const bool is_gone = result.error == ENOENT || result.error == ENOTDIR;
  return result.error == save_result::not_finite
             ? "\n  try: a lower --learning-rate, or --clip-norm 1; "
         : result.error == EFBIG ? "\n  try: a larger ulimit -f; "
         : result.lacks_room()   ? "\n  try: free space, or --run DIR elsewhere; "
         : is_gone ? "\n  try: to leave the folders of a run where they are, or --run DIR "
                     "elsewhere; "
                   : "\n  try: a disk that can be written, or --run DIR elsewhere; ";
}

void save_schedule::finish(bool last) {
  if (!writes_)
    return;
  run_.watch.now(activity::saving);
  writes_ = false;
  const save_result result = writer_->complete();
  tell(seconds_now());
  if (result.made_folder)
    output_.warn(writer_->folder() +
                 ": was moved or removed while the run went on, and is made again; the run keeps "
                 "nothing of what was in it");
  if (result.error == 0) {
    folder_.note_saved();
    prunes_next_ = true;
    return;
  }
  // From here on memory may be allocated: something is wrong anyway.
  const std::string problem = save_problem(result, writer_->folder(), saved_step_);
  saved_step_ = -1;
  const bool diverged = result.error == save_result::not_finite;
  if (last || diverged)
    throw failure(diverged ? exit_diverged : exit_disk,
                  run_.is_first()
                      ? problem + advice_on(result) + "the checkpoints before it are as they were"
                      : "",
                  /*everywhere=*/true);
  output_.warn(problem + "; training goes on, the checkpoints before it are as they were");
}

} // namespace trainc
