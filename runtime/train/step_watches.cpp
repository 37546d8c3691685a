// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_watches.h"

#include "runtime/failure.h"
#include "runtime/files/run_files.h"

#include <cstring>
#include <filesystem>

namespace trainc {
namespace {

name_pattern pattern_of(const std::string &text) {
  std::string why;
  return *name_pattern::parse(text, why); // the options were checked
}

} // namespace

step_watches::step_watches(run &run, const run_plan &plan, run_output &output)
    : run_(run), plan_(plan), output_(output) {
  const trainer_options &options = run.options;
  run.ranks.together([&] {
    if (!options.watch.empty())
      tensors_.emplace(run, pattern_of(options.watch), "watch");
    if (!options.dump.empty())
      dumped_.emplace(run, pattern_of(options.dump), "dump");
    if (options.histograms_every > 0 && !options.no_tensorboard && !plan.is_dry) {
      parameters_.emplace(run, pattern_of(".*"), "histograms-every", watched_kinds::of_parameters);
      parameters_->show_to(&histograms_.emplace(run));
    }
    if (options.memory_every > 0)
      memory_.emplace(run, plan.layout.micro_batches);
  });
}

void step_watches::begin(batch_feed &feed, save_schedule &saves) {
  const trainer_options &options = run_.options;
  const std::string folder = run_.ranks.broadcast(plan_.choice.folder);
  run_.ranks.together([&] {
    if (tensors_ || dumped_)
      open_files(options.watch_folder.empty() ? statistics_of(folder) : options.watch_folder);
  });
  if (options.profile_steps)
    profile_.emplace(run_, output_, feed, saves, plan_.first, plan_.last, folder);
}

// Of all ranks, each with files of its own: they may be on several hosts.
void step_watches::open_files(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw failure(exit_disk, folder + ": cannot be made: " + error.message());
  if (tensors_)
    tensors_->show_to(&statistics_.emplace(run_, folder));
  if (dumped_)
    dumped_->show_to(&dump_.emplace(folder, run_.ranks.rank()));
}

// What is measured begins last and ends first.
void step_watches::begin_step(int64_t step, gradient_step &gradient) {
  for (auto &[watched, is_due] :
       {std::pair(&tensors_, is_watched(step)), std::pair(&dumped_, is_watched(step)),
        std::pair(&parameters_, has_histograms(step))})
    if (*watched && is_due) {
      (*watched)->begin_step(step, gradient.batches_per_step());
      observers_.add(**watched);
    }
  if (shows_memory(step)) {
    memory_->begin_step();
    observers_.add(*memory_);
  }
  if (is_profiled(step))
    observers_.add(profile_->begin_step(step));
  observers_.attach(run_.target, gradient);
}

void step_watches::end_step(int64_t step, gradient_step &gradient) {
  if (is_profiled(step))
    profile_->end_step();
  observers_.detach(run_.target, gradient);
  if (tensors_ && is_watched(step))
    tensors_->end_step();
  if (dumped_ && is_watched(step)) {
    dumped_->end_step();
    dump_->write(step);
  }
  if (shows_memory(step))
    output_.show_memory(step, *memory_);
  norms_.clear();
  if (!has_histograms(step))
    return;
  parameters_->end_step();
  histograms_->bring_to_first();
  norms_ = histograms_->norms_of_groups();
}

void step_watches::note_step(int64_t step) {
  if (has_histograms(step))
    histograms_->write(step, output_.events);
  if (const int error = statistics_ ? statistics_->take_error() : 0)
    output_.warn_of_rank(statistics_->path() + ": cannot be written: " + strerror(error) +
                         "; no more statistics are written");
  if (const std::string problem = dump_ ? dump_->take_problem() : ""; !problem.empty())
    output_.warn_of_rank(problem + "; no more tensors are written");
  if (profile_ && profile_->is_over(step))
    profile_->write(step);
}

void step_watches::finish(int64_t last) {
  if (profile_)
    profile_->write(last);
}

} // namespace trainc
