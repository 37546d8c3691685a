// SPDX-License-Identifier: Apache-2.0
//
// The training loop.
#include "runtime/process/clock.h"
#include "runtime/process/host_memory.h"
#include "runtime/run/trainer.h"

#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <functional>

namespace trainc {
namespace {

// Of shorter runs the machine is not measured: its first steps are most of them.
constexpr double measured_from_seconds = 2;

// Between two looks at whether the run's folder is still there.
constexpr double look_seconds = 2;

constexpr int end_requests = stop_request | time_request; // of signal_request

} // namespace

// Bad data end a run; what it has learnt before them, in its steps to `done`, is sound and stays.
template <typename Work> int trainer::or_save(int64_t done, Work work) {
  try {
    return work();
  } catch (const failure &error) {
    if (!error.everywhere || error.code != exit_data || steps_taken_ == 0)
      throw;
    save(done, /*last=*/false);
    throw;
  }
}

int trainer::operator()() {
  decide();
  if (is_at_last_step())
    return nothing_to_do();
  run_.ranks.together([&] { check_data(); });
  if (!run_.ranks.broadcast(evaluates_other_data_ ? "yes" : "").empty())
    best_ = {}; // on every rank, which all end by it
  if (!resumed_.path.empty() && is_stale())
    return nothing_to_do();
  if (dry_)
    extent_.last = extent_.first + 1;
  set_up();
  begin();
  run_.print_table(describe_data(), layout_.micro_batches);
  start_seconds_ = saved_seconds_ = evaluated_seconds_ = seconds_now();
  try {
    take_steps();
  } catch (const failure &error) {
    progress_->finish();  // the message has a line of its own
    if (error.everywhere) // else the other ranks would not be there
      end_save();
    throw;
  }
  if (end_request_ != no_request && last_step_ < extent_.last)
    exit_code_ = exit_stopped;
  summarize();
  return exit_code_;
}

void trainer::take_steps() {
  last_step_ = extent_.first;
  // A kill or a request may have come before.
  if (has_own_checkpoint_ && is_sampled(last_step_))
    show(last_step_, &trainer::write_sample, /*saved=*/true);
  if (has_own_checkpoint_ && is_due(options_.evaluate_every, last_step_) &&
      resumed_.evaluated.empty()) {
    show(last_step_, &trainer::show_held_out, /*saved=*/true);
    save_evaluation(last_step_);
  }
  while (!is_last(last_step_)) {
    const int64_t step = last_step_ + 1;
    ask_for_end();
    ask_for_save();
    ask_for_evaluation();
    look_at_folder();
    const int requests = or_save(step - 1, [&] { return take_step(step); });
    last_step_ = step;
    if (requests & gone_request)
      give_up();
    proceed_with_save(requests);
    end_request_ |= requests & end_requests;
    save_due_ |= is_due(options_.checkpoint_every, step) || (requests & period_request);
    bool asked = requests & (checkpoint_request | end_requests);
    if (asked) // who asked may not wait for more
      save(step, is_last(step));
    if (is_sampled(step))
      asked = show(step, &trainer::write_sample, asked);
    if (is_evaluated(step, requests)) {
      asked = show(step, &trainer::show_held_out, asked);
      save_evaluation(step);
    }
    if (!asked && (is_last(step) || (save_due_ && skipped_in_a_row_ == 0)))
      save(step, is_last(step));
  }
  end_save();
}

// A checkpoint that was written before the step's evaluation is written again, with its results.
void trainer::save_evaluation(int64_t step) {
  if (evaluated_step_ != step || saved_step_ != step)
    return;
  end_save();
  saved_step_ = -1;
  save(step, is_last(step));
}

// Does what takes its time, for which no request waits: it begins anew after the checkpoint, or is
// left out where the run ends. Returns whether there is a checkpoint that was asked for.
bool trainer::show(int64_t step, int (trainer::*work)(int64_t), bool saved) {
  while (end_request_ == no_request) {
    if (saved)
      end_save(); // which else would end with the next step
    const double data = feed_->seconds_of_data();
    const double exchanging = run_.watch.seconds_of(activity::exchanging);
    const int requests = or_save(step, [&] { return (this->*work)(step); });
    data_of_shown_ += feed_->seconds_of_data() - data;
    exchanging_of_shown_ += run_.watch.seconds_of(activity::exchanging) - exchanging;
    if (requests == no_request)
      break;
    if (requests & gone_request)
      give_up();
    end_request_ |= requests & end_requests;
    saved = true;
    save(step, is_last(step));
  }
  return saved;
}

// A step that is not finite, or whose loss is a spike, left everything as it was. Goes on with the
// next, to a limit.
void trainer::note_skipped(int64_t step, const step_result &result, bool is_spike) {
  ++skipped_steps_;
  ++skipped_in_a_row_;
  bool is_loss = !std::isfinite(result.loss) || is_spike;
  const double value = is_loss ? result.loss : result.gradient_norm;
  std::string text = format_text("step %" PRId64 ": the %s is %g", step,
                                 is_loss ? "loss" : "gradient norm", value);
  if (is_spike)
    text += format_text(", above %g, which is %g standard deviations above the mean",
                        losses_.limit(options_.spike_limit), options_.spike_limit);
  if (skipped_in_a_row_ == 1) {
    progress_->finish();
    const std::string found = is_spike ? "" : not_finite_data_of(step);
    run_.warn(text + ": the step is skipped" + (found.empty() ? "" : "; " + found));
  }
  if (skipped_in_a_row_ < options_.nonfinite_limit)
    return;
  if (skipped_in_a_row_ > 1)
    text += format_text("; %" PRId64 " steps in a row were skipped", skipped_in_a_row_);
  text += checkpoints_ ? "; checkpoints of earlier steps are as they were" : "";
  throw failure(exit_diverged,
                run_.is_first()
                    ? text + (skipped_steps_ == step ? "\n  try: data without NaN, and with labels "
                                                       "that count"
                                                     : "\n  try: a lower --learning-rate, or "
                                                       "--clip-norm 1")
                    : "",
                /*everywhere=*/true);
}

// What of the step's data is not finite, of all ranks: said by the first one, once.
std::string trainer::not_finite_data_of(int64_t step) {
  if (!run_.is_first() || was_data_looked_at_)
    return "";
  was_data_looked_at_ = true;
  return run_.not_finite_data(
      run_.request_of_data(!options_.no_shuffle, extent_.order.seed, /*partial_batches=*/true),
      data_part::training, batch_of(step), gradient_->batches_per_step());
}

// At the first line that is lost, and after the first folder that could not be synced.
void trainer::note_log() {
  if (!syncs_folders() && !is_sync_said_) {
    is_sync_said_ = true;
    progress_->finish();
    run_.warn(choice_.folder + ": the file system does not sync folders: a checkpoint may be lost "
                               "with the machine, not with the run\n  try: --run on another file "
                               "system");
  }
  if (log_->error() == 0 || log_lacks_lines_)
    return;
  log_lacks_lines_ = true;
  progress_->finish();
  run_.warn(log_of(choice_.folder) + ": a line could not be written: " + strerror(log_->error()) +
            "; training goes on");
}

double trainer::hyperparameter_at(int64_t number, int64_t step) const {
  const program &program = run_.prog;
  const std::optional<double> given = options_.hyperparameters[static_cast<size_t>(number)];
  const char *follows = program.hyperparameters[number].follows;
  if (follows && strcmp(follows, "learning_rate") == 0) {
    rate_schedule own = schedule_;
    own.peak = given.value_or(schedule_.peak);
    return own(step);
  }
  for (int64_t i = 0; follows && !given && i < program.hyperparameter_count; ++i)
    if (strcmp(follows, program.hyperparameters[i].name) == 0)
      return hyperparameter_at(i, step);
  return given.value_or(program.hyperparameters[number].default_value);
}

void trainer::set_scalars(int64_t step) {
  const program &program = run_.prog;
  for (int64_t i = 0; i < program.hyperparameter_count; ++i)
    run_.target.set_scalar(program.hyperparameters[i].offset, hyperparameter_at(i, step));
  run_.target.set_scalar(program.learning_rate_offset, schedule_(step));
  // Of the updates: a skipped step is none.
  run_.target.set_scalar(program.step_offset, static_cast<double>(step - skipped_steps_));
  run_.target.set_scalar(program.gradient_scale_offset,
                         1.0 / static_cast<double>(gradient_->batches_per_step()));
  auto limit = [](double most) { return most > 0 ? most : INFINITY; };
  run_.target.set_scalar(program.clip_norm_offset, limit(options_.clip_norm));
  run_.target.set_scalar(program.clip_value_offset, limit(options_.clip_value));
  run_.target.set_scalar(program.loss_limit_offset, losses_.limit(options_.spike_limit));
}

int trainer::take_step(int64_t step) {
  mark_seconds_ = seconds_now();
  run_.watch.begin_step(step);
  set_scalars(step);
  step_result result = gradient_->with_update(data_part::training, batch_of(step), step);
  const bool is_spike = result.applied && std::signbit(result.gradient_norm);
  result.gradient_norm = std::abs(result.gradient_norm);
  result.applied &= !is_spike;
  ++steps_taken_;
  loss_ = result.loss;

  double seconds = seconds_now() - mark_seconds_;
  auto per_second = [&](int64_t per_batch) {
    return static_cast<double>(per_batch * gradient_->batches_per_step()) / seconds;
  };
  step_record record = {step,
                        result.loss,
                        result.gradient_norm,
                        schedule_(step),
                        seconds * 1e3,
                        per_second(data_->samples_per_batch()),
                        per_second(data_->tokens_per_batch()),
                        !result.applied,
                        run_.target.last_exchange().since(mark_seconds_)};
  if (step % options_.log_every == 0 || step == extent_.last || record.skipped ||
      (result.requests & end_requests))
    log_->write(record);
  note_log();
  progress_->step(record, is_evaluated(step, result.requests));
  if (!result.applied) {
    note_skipped(step, result, is_spike);
    return result.requests;
  }
  skipped_in_a_row_ = 0;
  losses_.add(result.loss);
  if (prunes_next_ && checkpoints_)
    checkpoints_->prune();
  prunes_next_ = false;
  return result.requests;
}

// Like a signal: the ranks agree on it in the step, or between two batches of an evaluation.
void trainer::ask_for_end() const {
  if (seconds_now() - start_seconds_ >= most_seconds_)
    request(time_request);
}

// Of the first rank's clock; the ranks hear of it in the step, like of a signal.
void trainer::ask_for_save() const {
  if (run_.is_first() && has_passed(options_.checkpoint_every, saved_seconds_))
    request(period_request);
  ask_for_writing();
}

void trainer::ask_for_evaluation() const {
  if (run_.is_first() && has_passed(options_.evaluate_every, evaluated_seconds_))
    request(evaluation_request);
}

bool trainer::has_passed(const period &every, double since_seconds) const {
  return every.of == period::minutes && every.count > 0 &&
         seconds_now() - since_seconds >= every.count * 60;
}

void trainer::ask_for_writing() const {
  if (writes_ && checkpoints_->is_busy())
    request(writing_request);
}

// With the checkpoint in the background, where no rank is writing any more.
void trainer::proceed_with_save(int requests) {
  if (writes_ && !(requests & writing_request) && checkpoints_->proceed())
    end_save();
}

// Of the first rank, likewise; also in the midst of what may take hours.
void trainer::look_at_folder() {
  if (!folder_ || seconds_now() - looked_seconds_ < look_seconds)
    return;
  looked_seconds_ = seconds_now();
  log_->look();
  if (!folder_->is_there())
    request(gone_request);
  else
    look_at_bookkeeping();
}

// Without it the run could not go on. What was gone and what cannot come back is said once: what
// fails is tried again and again.
void trainer::look_at_bookkeeping() {
  auto say = [&](const std::string &problem) {
    if (!said_of_bookkeeping_.insert(problem).second)
      return;
    progress_->finish();
    run_.warn(problem);
  };
  try {
    for (std::string made = folder_->bring_back(); !made.empty(); made = folder_->bring_back())
      say(made + ": was removed while the run went on, and is written again");
  } catch (const folder_in_use &) { // by a run that began after the lock was removed
    is_taken_ = true;
    request(gone_request);
  } catch (const failure &error) {
    say(error.message);
  }
}

void trainer::give_up() const {
  throw failure(exit_disk,
                !run_.is_first() ? ""
                : is_taken_
                    ? choice_.folder + ": its .lock was removed, and another run has begun there"
                                       "\n  try: --resume CHECKPOINT --run DIR, elsewhere"
                    : choice_.folder + ": was moved or removed while its run went on, which can "
                                       "keep nothing any more\n  try: --resume latest where it is "
                                       "now, and to leave the folder of a run where it is",
                /*everywhere=*/true);
}

// By steps or epochs; what is by time is asked for.
bool trainer::is_due(const period &every, int64_t step) const {
  if (every.count == 0 || every.of == period::minutes)
    return false;
  if (every.of == period::steps)
    return step % static_cast<int64_t>(every.count) == 0;
  double batches = every.count * data_->batches_per_epoch();
  auto periods = [&](int64_t taken) { return std::floor(static_cast<double>(taken) / batches); };
  return periods(batch_of(step + 1)) > periods(batch_of(step));
}

// Returns requests that came meanwhile (signal_request bits); then nothing is shown. What is being
// written in the background is completed in its course, which may take hours.
int trainer::show_held_out(int64_t step) {
  const auto mine = [this] {
    ask_for_end();
    ask_for_writing();
    look_at_folder();
    return take_signal_requests();
  };
  const auto of_all = [this](int requests) {
    proceed_with_save(requests);
    return requests & ~writing_request;
  };
  int requests = (*held_out_)(validation_ ? data_part::all : data_part::held_out, held_out_batches_,
                              {mine, of_all});
  if (validation_) {
    feed_->forget();
    validation_feed_->forget();
  }
  if (requests != no_request)
    return requests;
  if (const std::string lack = labels_lack_ ? "" : held_out_->lack_of_labels(); !lack.empty()) {
    labels_lack_ = true;
    progress_->finish();
    run_.warn("no valid labels in the held-out data: " + lack +
              ", so there is no mean\n  try: data with labels that count");
  }
  evaluated_step_ = step;
  evaluated_seconds_ = seconds_now();
  if (!std::isfinite(held_out_->results()[0].value) && !labels_lack_ && !is_held_out_loss_said_) {
    is_held_out_loss_said_ = true;
    progress_->finish();
    run_.warn(format_text("step %" PRId64 ": the held-out loss is not finite\n  try: --check-data, "
                          "which names a sample with NaN or an "
                          "infinity; or a lower --learning-rate",
                          step));
  }
  const bool is_best = best_.add(step, metric_of(watched_, NAN, held_out_->results()));
  save_due_ |= is_best && is_of_evaluation(options_.keep.best_by);
  log_->write_held_out(step, held_out_->results());
  progress_->held_out(step, held_out_->results());
  return no_request;
}

// By the first rank, for which the others wait, so that all hear of requests that came meanwhile
// (signal_request bits); these are returned.
int trainer::write_sample(int64_t step) {
  run_.watch.now(activity::evaluating);
  sample_reports_->clear();
  std::string message;
  try {
    if (run_.is_first() && sampled_step_ != step)
      write_own_sample(step);
  } catch (const failure &error) {
    sample_reports_->mine().status = error.code;
    message = error.message;
  }
  sample_reports_->mine().requests = take_signal_requests();
  run_.watch.now(activity::exchanging);
  sample_reports_->exchange(message);
  run_.watch.now(activity::evaluating);
  return sample_reports_->requests();
}

// Unless a request comes before its end.
void trainer::write_own_sample(int64_t step) {
  if (samples_ && step == extent_.first && samples_->has(step))
    return;
  sample_ = options_.prompt;
  auto put = [this](char byte) {
    sample_ += byte;
    ask_for_end();
    look_at_folder();
    return !has_signal_requests();
  };
  const bool is_whole = (*text_)(static_cast<uint64_t>(step), std::ref(put)); // allocates nothing
  feed_->forget();
  if (!is_whole)
    return;
  sampled_step_ = step;
  sample_ += '\n';
  if (dry_ || samples_->write(step, sample_) == 0)
    return;
  const std::string why = strerror(errno); // something is wrong anyway
  progress_->finish();
  run_.warn(format_text("%s: the sample of step %" PRId64
                        " cannot be written: %s; training goes on",
                        samples_->path().c_str(), step, why.c_str()));
}

void trainer::save(int64_t step, bool last) {
  if (!checkpoints_)
    return;
  end_save();
  if (step == saved_step_)
    return;
  run_.watch.now(activity::saving);
  save_due_ = false;
  saved_step_ = step;
  run_position at = {step, batch_of(step + 1), skipped_steps_, loss_, {}, losses_, best_};
  if (evaluated_step_ == step)
    at.evaluated = held_out_->results();
  checkpoints_->begin(at);
  saved_seconds_ = seconds_now();
  writes_ = true;
  if (last || !background_)
    end_save(last);
}

// Waits for the checkpoint that is being written, and says what became of it.
void trainer::end_save(bool last) {
  if (!writes_)
    return;
  run_.watch.now(activity::saving);
  writes_ = false;
  save_result result = checkpoints_->complete();
  if (result.made_folder) {
    progress_->finish();
    run_.warn(checkpoints_->folder() +
              ": was moved or removed while the run went on, and is made again; the run keeps "
              "nothing of what was in it");
  }
  if (result.error == 0) {
    if (folder_)
      folder_->note_saved();
    prunes_next_ = true;
    return;
  }
  // From here on memory may be allocated: something is wrong anyway.
  std::string problem = save_problem(result, checkpoints_->folder(), saved_step_);
  saved_step_ = -1;
  bool diverged = result.error == save_result::not_finite;
  const bool is_gone = result.error == ENOENT || result.error == ENOTDIR;
  const char *advice = diverged ? "\n  try: a lower --learning-rate, or --clip-norm 1; "
                       : result.error == EFBIG ? "\n  try: a larger ulimit -f; "
                       : result.lacks_room()   ? "\n  try: free space, or --run DIR elsewhere; "
                       : is_gone ? "\n  try: to leave the folders of a run where they are, or "
                                   "--run DIR elsewhere; "
                                 : "\n  try: a disk that can be written, or --run DIR elsewhere; ";
  if (last || diverged)
    throw failure(diverged ? exit_diverged : exit_disk,
                  run_.is_first() ? problem + advice + "the checkpoints before it are as they were"
                                  : "",
                  /*everywhere=*/true);
  progress_->finish();
  run_.warn(problem + "; training goes on, the checkpoints before it are as they were");
}

// "3 evaluations without a better held-out-loss than 1.25, of step 40 (--patience 3)"
std::string trainer::of_patience() const {
  const double value = more_is_better(watched_) ? -best_.value : best_.value;
  std::string text = counted(best_.later, "evaluation") + " without a better " + watched_;
  if (best_.step > 0)
    text += format_text(" than %g, of step %" PRId64, value, best_.step);
  return text + format_text(" (--patience %" PRId64 ")", options_.patience);
}

// What the steps reach, and after the work of the run what the machine would. On a machine that is
// busier after the run than it was in the steps the product may be slower than they were: then it
// says nothing.
void trainer::show_rate(double rate, double steps_seconds) {
  printf("%.3g GFLOP/s a rank in the steps", rate * 1e-9);
  const double most = steps_seconds < measured_from_seconds ? 0 : run_.target.product_rate();
  if (most > 0 && most >= rate) {
    printf(", %.3f of the %.3g that a large matrix product reaches with its threads", rate / most,
           most * 1e-9);
    log_->write_machine(most, rate / most);
  }
  printf("\n");
}

void trainer::summarize() {
  if (!run_.is_first())
    return;
  progress_->finish();
  if (folder_ && folder_->is_there())
    look_at_bookkeeping();
  run_.watch.now(activity::computing); // what went before counts
  const double data = feed_->seconds_of_data() - data_of_shown_;
  auto spent = [&](activity what) { return run_.watch.seconds_of(what); };
  run_summary summary = {steps_taken_,
                         skipped_steps_,
                         seconds_now() - start_seconds_,
                         peak_resident_bytes(),
                         spent(activity::computing) - data,
                         data,
                         spent(activity::exchanging) - exchanging_of_shown_,
                         spent(activity::evaluating) + exchanging_of_shown_,
                         spent(activity::saving)};
  const double steps_seconds = summary.seconds - summary.evaluating - summary.saving;
  summary.rate = run_.prog.micro_batch_flops * static_cast<double>(gradient_->batches_per_step()) *
                 static_cast<double>(steps_taken_) / run_.ranks.size() / steps_seconds;
  if (exit_code_ == exit_stopped)
    summary.ended = end_request_ & stop_request ? "preempted" : "max-time";
  else if (last_step_ < extent_.last)
    summary.ended = "patience";
  log_->write_summary(summary);
  if (exit_code_ == exit_stopped)
    printf("stopped by %s at step %" PRId64 " of %" PRId64 "; %s\n",
           end_request_ & stop_request ? "a signal" : "--max-time", last_step_, extent_.last,
           checkpoints_ ? "--resume latest goes on" : "without a checkpoint");
  else if (last_step_ < extent_.last)
    printf("ended at step %" PRId64 " of %" PRId64 ": %s\n", last_step_, extent_.last,
           of_patience().c_str());
  printf("%s in %.1f s: computing %.1f, data %.1f, exchanging gradients %.1f, evaluating %.1f, "
         "checkpoints %.1f\n",
         counted(summary.steps, "step").c_str(), summary.seconds, summary.computing, summary.data,
         summary.exchanging, summary.evaluating, summary.saving);
  if (summary.rate > 0)
    show_rate(summary.rate, steps_seconds);
  if (skipped_steps_ > 0)
    printf("skipped, their loss or gradient not finite or a spike: %s of the run\n",
           counted(skipped_steps_, "step").c_str());
  if (skipped_steps_ > 0 && skipped_steps_ == extent_.first + steps_taken_ && !dry_) {
    run_.warn("every step of the run was skipped: nothing was trained");
    exit_code_ = exit_diverged;
  }
  printf("peak resident memory: %s\n", byte_text(summary.peak_resident_bytes).c_str());
  if (dry_)
    printf("a dry run: nothing is kept of it\n");
  if (log_->error() != 0) {
    run_.warn(log_of(choice_.folder) + ": some lines of the log could not be written");
    exit_code_ = exit_disk;
  }
}

int train(run &run) {
  trainer trainer(run);
  return run.watch.supervise([&] { return trainer(); });
}

} // namespace trainc
