// SPDX-License-Identifier: Apache-2.0
//
// The training loop.
#include "runtime/gradient_step.h"
#include "runtime/progress.h"
#include "runtime/run.h"
#include "runtime/schedule_rate.h"
#include "runtime/signals.h"
#include "runtime/statistics.h"
#include "runtime/step_log.h"

#include <cinttypes>
#include <cmath>
#include <memory>

namespace trainc {
namespace {

// Where a run begins and ends.
struct extent {
  int64_t first = 0, last = 0; // steps first + 1 ... last are taken
  int64_t batches_taken = 0;   // before step first + 1, by all ranks
  uint64_t seed = 0;
};

rate_schedule schedule_of(const settings &options, int64_t last_step) {
  rate_schedule schedule;
  const std::string &kind = options.text("schedule");
  schedule.kind = kind == "linear"   ? schedule_kind::linear
                  : kind == "cosine" ? schedule_kind::cosine
                                     : schedule_kind::constant;
  schedule.peak = options.real("learning-rate");
  schedule.final_rate = options.real("final-learning-rate");
  schedule.warmup_steps = options.integer("warmup-steps");
  schedule.total_steps =
      options.has("schedule-steps") ? options.integer("schedule-steps") : last_step;
  return schedule;
}

class trainer {
public:
  explicit trainer(run &run) : run_(run), options_(run.options) {}

  int operator()() {
    set_up();
    run_.print_table();
    start_seconds_ = seconds_now();
    bool stopped = false;
    for (int64_t step = extent_.first + 1; step <= extent_.last && !stopped; ++step) {
      int requests = take_step(step);
      if (held_out_every_ > 0 && (step % held_out_every_ == 0 || step == extent_.last))
        show_held_out(step);
      stopped = requests & stop_request;
      bool last = step == extent_.last || stopped;
      if (last || requests || (save_every_ > 0 && step % save_every_ == 0))
        save(step, last);
      if (step == extent_.first + 2)
        allocations_ = allocation_count();
    }
    summarize();
    return exit_code_;
  }

private:
  void set_up();
  void check_options() const;
  void find_extent();
  void settle_last_step();
  void load_state(const checkpoint_info &from);
  int take_step(int64_t step);
  void set_scalars(int64_t step, double rate);
  void show_held_out(int64_t step);
  void save(int64_t step, bool last);
  void summarize();
  [[noreturn]] void diverged(int64_t step, const char *what, double value) const;
  int64_t batch_of(int64_t step) const {
    return extent_.batches_taken + (step - 1 - extent_.first) * gradient_->batches_per_step();
  }

  run &run_;
  const settings &options_;
  extent extent_;
  checkpoint_info resumed_;
  std::optional<loader> data_;
  std::optional<batch_feed> feed_;
  std::unique_ptr<gradient_step> gradient_;
  std::unique_ptr<mean_loss> held_out_;
  std::unique_ptr<checkpoint_writer> checkpoints_;
  std::unique_ptr<step_log> log_;
  std::unique_ptr<progress> progress_;
  std::vector<double> hyperparameters_;
  rate_schedule schedule_;
  double clip_norm_ = INFINITY, start_seconds_ = 0, mark_seconds_ = 0;
  int64_t held_out_every_ = 0, save_every_ = 0, held_out_batches_ = 0, steps_taken_ = 0;
  int64_t allocations_ = -1;
  int exit_code_ = exit_success;
};

void trainer::check_options() const {
  problem_list problems;
  if (options_.has("steps") == options_.has("epochs"))
    problems.add("train: needs either --steps or --epochs\n  try: --steps 1000");
  if (options_.integer("evaluate-every") > 0 && options_.real("holdout") == 0)
    problems.add("option --evaluate-every: there is no held-out part of the data\n  try: --holdout "
                 "0.1");
  if (options_.has("resume") && options_.text("resume") == "latest" &&
      run_.checkpoint_folder().empty())
    problems.add("option --resume: latest needs a folder of checkpoints, not --checkpoints none");
  problems.throw_if_any(exit_usage);
}

// Looks for the checkpoint to go on from, before anything is allocated.
void trainer::find_extent() {
  extent_.seed = static_cast<uint64_t>(options_.integer("seed"));
  if (!options_.has("resume"))
    return;
  std::string path;
  run_.ranks.together([&] {
    if (!run_.is_first())
      return;
    auto warn = [&](const std::string &text) { run_.warn(text); };
    path = find_checkpoint(options_.text("resume"), run_.checkpoint_folder(), run_.prog, warn).path;
    if (path.empty())
      run_.warn(run_.checkpoint_folder() +
                ": holds no checkpoint yet; training begins with the initial parameters");
  });
  path = run_.ranks.broadcast(path);
  if (path.empty())
    return;
  run_.ranks.together([&] {
    resumed_ = read_manifest(path);
    if (options_.given("seed") && extent_.seed != resumed_.seed)
      throw failure(exit_usage, format_text("option --seed: the checkpoint's run has seed %" PRIu64
                                            "; another would change the order of the data",
                                            resumed_.seed));
  });
  extent_.first = resumed_.step;
  extent_.batches_taken = resumed_.batches_taken;
  extent_.seed = resumed_.seed;
}

void trainer::settle_last_step() {
  int64_t per_step = options_.integer("micro-batches") * run_.ranks.size();
  run_.ranks.together([&] {
    int64_t per_epoch = data_->batches(data_part::training);
    if (per_epoch < per_step)
      throw failure(exit_data,
                    format_text("the training data has %" PRId64 " batches of %" PRId64
                                " samples, but one step takes %" PRId64 " (%d ranks x %" PRId64
                                " micro-batches)\n  try: more data, or "
                                "fewer ranks or micro-batches",
                                per_epoch, data_->samples_per_batch(), per_step, run_.ranks.size(),
                                options_.integer("micro-batches")));
    extent_.last = options_.has("steps")
                       ? options_.integer("steps")
                       : static_cast<int64_t>(
                             std::ceil(options_.real("epochs") * static_cast<double>(per_epoch) /
                                       static_cast<double>(per_step)));
    held_out_every_ = options_.integer("evaluate-every");
    if (held_out_every_ > 0)
      held_out_batches_ = data_->batches(data_part::held_out);
  });
}

void trainer::set_up() {
  check_options();
  find_extent();
  data_.emplace(run_.open_data(!options_.flag("no-shuffle"), extent_.seed));
  settle_last_step();

  int64_t micro_batches = options_.integer("micro-batches");
  run_.target.allocate(memory_use::training, micro_batches);
  feed_.emplace(run_.target, *data_);
  gradient_ = std::make_unique<gradient_step>(run_, *feed_, micro_batches);
  held_out_ = std::make_unique<mean_loss>(run_, *feed_);
  if (resumed_.path.empty())
    run_.load_initial_parameters();
  else
    run_.ranks.together(
        [&] { load_tensors(resumed_, state_tensors(run_.prog, run_.places()), run_.target); });

  schedule_ = schedule_of(options_, extent_.last);
  clip_norm_ = options_.real("clip-norm");
  save_every_ = options_.integer("checkpoint-every");
  for (int64_t i = 0; i < run_.prog.hyperparameter_count; ++i)
    hyperparameters_.push_back(options_.real(option_name(run_.prog.hyperparameters[i])));
  if (std::string folder = run_.checkpoint_folder(); !folder.empty())
    checkpoints_ = std::make_unique<checkpoint_writer>(run_.prog, run_.places(), run_.target,
                                                       run_.ranks, real_file_operations(), folder,
                                                       options_.integer("keep"), extent_.seed);
  run_.ranks.together([&] {
    log_ = std::make_unique<step_log>(run_.is_first() ? options_.text("log") : "", extent_.first);
  });
  progress_ = std::make_unique<progress>(options_.flag("no-progress") || !run_.is_first(),
                                         extent_.first, extent_.last);
}

void trainer::diverged(int64_t step, const char *what, double value) const {
  std::string text = format_text("step %" PRId64 ": the %s is %g", step, what, value);
  text += checkpoints_ ? "; checkpoints of earlier steps are as they were" : "";
  throw failure(exit_diverged,
                run_.is_first() ? text + "\n  try: a lower --learning-rate, or --clip-norm 1" : "");
}

void trainer::set_scalars(int64_t step, double rate) {
  const program &program = run_.prog;
  for (int64_t i = 0; i < program.hyperparameter_count; ++i)
    run_.target.set_scalar(program.hyperparameters[i].offset,
                           hyperparameters_[static_cast<size_t>(i)]);
  run_.target.set_scalar(program.learning_rate_offset, rate);
  run_.target.set_scalar(program.step_offset, static_cast<double>(step));
  run_.target.set_scalar(program.gradient_scale_offset,
                         1.0 / static_cast<double>(gradient_->batches_per_step()));
  run_.target.set_scalar(program.clip_norm_offset, clip_norm_);
}

int trainer::take_step(int64_t step) {
  mark_seconds_ = seconds_now();
  double rate = schedule_(step);
  set_scalars(step, rate);
  step_result result = gradient_->with_update(data_part::training, batch_of(step));
  if (!std::isfinite(result.loss))
    diverged(step, "loss", result.loss);
  if (!std::isfinite(result.gradient_norm))
    diverged(step, "gradient norm", result.gradient_norm);
  ++steps_taken_;

  double seconds = seconds_now() - mark_seconds_;
  auto per_second = [&](int64_t per_batch) {
    return static_cast<double>(per_batch * gradient_->batches_per_step()) / seconds;
  };
  step_record record = {step,
                        result.loss,
                        result.gradient_norm,
                        rate,
                        seconds * 1e3,
                        per_second(data_->samples_per_batch()),
                        per_second(data_->tokens_per_batch())};
  log_->write(record);
  progress_->step(record);
  return result.requests;
}

void trainer::show_held_out(int64_t step) {
  double loss = (*held_out_)(data_part::held_out, held_out_batches_);
  log_->write_held_out(step, loss);
  progress_->held_out(step, loss);
}

void trainer::save(int64_t step, bool last) {
  if (!checkpoints_)
    return;
  save_result result = checkpoints_->save(step, batch_of(step + 1));
  if (result.error == 0)
    return;
  // From here on memory may be allocated: something is wrong anyway.
  std::string problem = save_problem(result, checkpoints_->folder(), step);
  if (last)
    throw failure(exit_disk, run_.is_first()
                                 ? problem + "\n  try: free space, or --checkpoints DIR elsewhere; "
                                             "the checkpoints before it are as they were"
                                 : "");
  progress_->finish();
  run_.warn(problem + "; training goes on, the checkpoints before it are as they were");
}

void trainer::summarize() {
  int64_t now = allocation_count();
  if (!run_.is_first())
    return;
  progress_->finish();
  run_summary summary = {steps_taken_, seconds_now() - start_seconds_,
                         now < 0 ? now : (allocations_ < 0 ? 0 : now - allocations_),
                         peak_resident_bytes()};
  log_->write(summary);
  if (steps_taken_ == 0)
    printf("nothing to do: the checkpoint is at step %" PRId64 " of %" PRId64 "\n", extent_.first,
           extent_.last);
  printf("%" PRId64 " steps in %.1f s\n", summary.steps, summary.seconds);
  if (summary.allocations_after_step_2 >= 0)
    printf("allocations after step 2: %" PRId64 "\n", summary.allocations_after_step_2);
  printf("peak resident memory: %s\n", byte_text(summary.peak_resident_bytes).c_str());
  if (log_->failed()) {
    run_.warn(options_.text("log") + ": some lines of the log could not be written");
    exit_code_ = exit_disk;
  }
}

} // namespace

int train(run &run) { return trainer(run)(); }

} // namespace trainc
