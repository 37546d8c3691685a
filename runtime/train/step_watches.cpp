// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_watches.h"

#include "runtime/failure.h"
#include "runtime/files/run_files.h"
#include "runtime/plan/read_plan.h"
#include "runtime/ranks/stage_layout.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>

namespace trainc {
namespace {

constexpr size_t kinds = 3;
constexpr const char *ungrouped = "ungrouped"; // the parameters of no group

const char *folder_of(tensor_kind kind) {
  return kind == tensor_kind::total_gradient ? "gradients/"
         : kind == tensor_kind::update       ? "updates/"
                                             : "parameters/";
}

// With memory of its own: training goes on. 0 where there is none.
double product_rate(device &target) {
  constexpr size_t alignment = 64, bytes = 12 << 20; // matrices of 1024 x 1024
  const std::unique_ptr<void, void (*)(void *)> memory(std::aligned_alloc(alignment, bytes), free);
  return memory ? target.product_rate(static_cast<char *>(memory.get()), bytes) : 0;
}

name_pattern pattern_of(const std::string &text) {
  std::string why;
  return *name_pattern::parse(text, why); // the options were checked
}

} // namespace

parameter_histograms::parameter_histograms(run &run) : run_(run) {
  for (const parameter_place &parameter : run.prog.parameters)
    names_.push_back(module_name(run.prog, parameter.tensor.name).first);
  taken_.reserve(kinds * names_.size());
}

void parameter_histograms::take(const watched_values &values, statistics_taker &taker) {
  const parameter_role role = run_.prog.parameters[values.parameter].role;
  if (role == parameter_role::trained)
    taken_.push_back({values.tensor.kind, values.parameter, values.statistics(taker)});
}

// Replicas have the same.
void parameter_histograms::bring_to_first() {
  const stage_layout layout(run_.prog, run_.ranks.rank(), run_.ranks.size());
  if (layout.replica > 0)
    return taken_.clear();
  for (int stage = 1; stage < layout.stages; ++stage) {
    const int rank = layout.rank_of(0, stage);
    auto count = static_cast<int64_t>(taken_.size());
    if (run_.ranks.rank() == rank) {
      run_.ranks.send(&count, sizeof count, 0);
      run_.ranks.send(taken_.data(), count * static_cast<int64_t>(sizeof(histogram)), 0);
    } else if (run_.is_first()) {
      run_.ranks.receive(&count, sizeof count, rank);
      const size_t before = taken_.size();
      taken_.resize(before + static_cast<size_t>(count));
      run_.ranks.receive(taken_.data() + before, count * static_cast<int64_t>(sizeof(histogram)),
                         rank);
    }
  }
  auto place = [](const histogram &one) { return std::tuple(one.kind, one.parameter); };
  std::stable_sort(taken_.begin(), taken_.end(),
                   [&](const histogram &a, const histogram &b) { return place(a) < place(b); });
  taken_.erase(std::unique(taken_.begin(), taken_.end(), // a parameter that several stages read
                           [&](const auto &a, const auto &b) { return place(a) == place(b); }),
               taken_.end());
}

// In the order of the parameters, so that the bits do not depend on ranks.
std::vector<group_norm> parameter_histograms::norms_of_groups() const {
  std::vector<group_norm> norms;
  for (const histogram &one : taken_) {
    if (one.kind != tensor_kind::total_gradient)
      continue;
    const std::string group = run_.prog.parameters[one.parameter].group;
    auto known = std::find_if(norms.begin(), norms.end(),
                              [&](const group_norm &of) { return of.group == group; });
    if (known == norms.end())
      known = norms.insert(known, {group, 0});
    known->norm += one.of.nans + one.of.infinities > 0 ? NAN : one.of.sum_of_squares;
  }
  if (norms.size() < 2)
    return {};
  for (group_norm &of : norms) {
    of.group = of.group.empty() ? ungrouped : of.group;
    of.norm = std::sqrt(of.norm);
  }
  return norms;
}

void parameter_histograms::write(int64_t step, run_events &events) {
  if (run_.is_first())
    for (const histogram &one : taken_)
      events.write_histogram(step, folder_of(one.kind) + names_[static_cast<size_t>(one.parameter)],
                             one.of);
  taken_.clear();
}

step_profile::step_profile(run &run, const run_plan &plan, run_output &output, batch_feed &feed,
                           save_schedule &saves)
    : run_(run), plan_(plan), output_(output), feed_(feed), saves_(saves),
      steps_(*run.options.profile_steps), trace_(run.ranks), times_(run.target, &trace_) {
  if (steps_.end <= plan.first + 1 || steps_.begin > plan.last)
    warn_of_none(plan.last);
}

void step_profile::warn_of_none(int64_t last) {
  is_written_ = true;
  output_.warn(format_text("option --profile-steps: no trace is written: none of the steps "
                           "%" PRId64 " to %" PRId64 " is among those taken, %" PRId64
                           " to %" PRId64,
                           steps_.begin, steps_.end - 1, plan_.first + 1, last));
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
    trace_.make_room(1, std::min(steps_.end, plan_.last + 1) - taken_.end);
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
    write_file(given.empty() ? trace_of(plan_.choice.folder, taken_.begin, taken_.end) : given,
               rate);
  } catch (const failure &error) {
    output_.warn(error.message + "; training goes on without the trace");
  }
}

void step_profile::write_file(const std::string &path, double product_rate) {
  plan plan;
  std::optional<trace_file> file;
  trace_.gather(run_.prog, [&](rank_trace trace) {
    if (!file) {
      plan = read_plan(run_.folder, [&](const std::string &text) { output_.warn(text); });
      std::error_code ignored; // that it cannot be made is what the file says again
      if (run_.options.profile_file.empty())
        std::filesystem::create_directory(traces_of(plan_.choice.folder), ignored);
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

step_watches::step_watches(run &run, const run_plan &plan, run_output &output)
    : run_(run), plan_(plan), output_(output) {
  const trainer_options &options = run.options;
  run.ranks.together([&] {
    if (!options.watch.empty())
      tensors_.emplace(run, pattern_of(options.watch), "watch");
    if (!options.dump.empty())
      dumped_.emplace(run, pattern_of(options.dump), "dump");
    if (options.histograms_every > 0 && !options.no_tensorboard && !options.dry_run) {
      parameters_.emplace(run, pattern_of(".*"), "histograms-every", watched_kinds::of_parameters);
      parameters_->show_to(&histograms_.emplace(run));
    }
    if (options.memory_every > 0)
      memory_.emplace(run, plan.layout.micro_batches);
  });
}

void step_watches::begin(batch_feed &feed, save_schedule &saves) {
  run_.ranks.together([&] {
    if (tensors_ || dumped_)
      open_files();
  });
  if (run_.options.profile_steps)
    profile_.emplace(run_, plan_, output_, feed, saves);
}

// Of all ranks, each with files of its own: they may be on several hosts.
void step_watches::open_files() {
  const std::string &given = run_.options.watch_folder;
  const std::string folder = given.empty() ? statistics_of(plan_.choice.folder) : given;
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
  if (!norms_.empty())
    output_.events.write_norms(step, norms_);
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
