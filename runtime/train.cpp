// SPDX-License-Identifier: Apache-2.0
//
// The training loop.
#include "runtime/clock.h"
#include "runtime/evaluation.h"
#include "runtime/gradient_step.h"
#include "runtime/host_memory.h"
#include "runtime/progress.h"
#include "runtime/run.h"
#include "runtime/run_folder.h"
#include "runtime/schedule_rate.h"
#include "runtime/signals.h"
#include "runtime/stage_layout.h"
#include "runtime/step_log.h"
#include "runtime/train_options.h"

#include <cinttypes>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace trainc {
namespace {

// Of shorter runs the machine is not measured: its first steps are most of them.
constexpr double measured_from_seconds = 2;

// Between two looks at whether the run's folder is still there.
constexpr double look_seconds = 2;

constexpr int end_requests = stop_request | time_request; // of signal_request

// Where a run begins and ends.
struct extent {
  int64_t first = 0, last = 0; // steps first + 1 ... last are taken
  int64_t batches_taken = 0;   // before step first + 1, by all ranks
  sample_order order;          // that these are of
};

class trainer {
public:
  explicit trainer(run &run) : run_(run), options_(run.options), dry_(run.options.dry_run) {}

  int operator()() {
    decide();
    if (!resumed_.path.empty() && extent_.last <= extent_.first)
      return nothing_to_do();
    run_.ranks.together([&] { check_data(); });
    if (dry_)
      extent_.last = extent_.first + 1;
    set_up();
    begin();
    run_.print_table(describe_data());
    start_seconds_ = saved_seconds_ = seconds_now();
    try {
      take_steps();
    } catch (const failure &error) {
      if (error.everywhere) // else the other ranks would not be there
        end_save();
      throw;
    }
    if (end_request_ != no_request && last_step_ < extent_.last)
      exit_code_ = exit_stopped;
    summarize();
    return exit_code_;
  }

private:
  void take_steps() {
    bool stopped = false;
    for (int64_t step = extent_.first + 1; step <= extent_.last && !stopped; ++step) {
      ask_for_end();
      ask_for_save();
      look_at_folder();
      int requests = or_save(step - 1, [&] { return take_step(step); });
      last_step_ = step;
      if (requests & gone_request)
        give_up();
      if (writes_ && !(requests & writing_request) && checkpoints_->proceed())
        end_save();
      stopped = requests & end_requests;
      end_request_ |= requests & end_requests;
      bool last = step == extent_.last || stopped;
      save_due_ |= save_is_due(step) || (requests & period_request);
      bool asked = requests & (checkpoint_request | end_requests);
      if (asked) // who asked may not wait for more
        save(step, last);
      while (is_evaluated(step) && !stopped) {
        if (asked)
          end_save(); // which else would end with the next step
        requests = or_save(step, [&] { return show_held_out(step); });
        if (requests == no_request)
          break;
        stopped = requests & end_requests; // else it begins anew
        end_request_ |= requests & end_requests;
        last |= stopped;
        asked = true;
        save(step, last);
      }
      if (!asked && (last || (save_due_ && skipped_in_a_row_ == 0)))
        save(step, last);
    }
    end_save();
  }

  void decide();
  int nothing_to_do() const;
  void set_up();
  void find_extent();
  void choose_origin(const std::string &path);
  void refuse_older(const std::string &path, const std::string &where) const;
  void find_layout();
  std::vector<std::pair<std::string, std::string>> describe_data() const;
  void find_position();
  void check_data() const;
  void check_space() const;
  void begin();
  void settle_last_step();
  void load_state(const checkpoint_info &from);
  void ask_for_end() const;
  void ask_for_save() const;
  bool is_evaluated(int64_t step) const {
    return held_out_every_ > 0 && (step % held_out_every_ == 0 || step == extent_.last);
  }
  void look_at_folder();
  [[noreturn]] void give_up() const;
  bool save_is_due(int64_t step) const;
  template <typename Work> int or_save(int64_t done, Work work);
  int take_step(int64_t step);
  void note_log();
  void note_skipped(int64_t step, const step_result &result, bool is_spike);
  double hyperparameter_at(int64_t number, int64_t step) const;
  void set_scalars(int64_t step);
  int show_held_out(int64_t step);
  void save(int64_t step, bool last);
  void end_save(bool last = false);
  void summarize();
  void show_rate(double rate, double steps_seconds);
  int64_t batch_of(int64_t step) const {
    return extent_.batches_taken + (step - 1 - extent_.first) * gradient_->batches_per_step();
  }

  run &run_;
  const trainer_options &options_;
  const bool dry_; // one step, of which nothing is kept
  run_choice choice_;
  batch_layout layout_;
  std::optional<run_folder> folder_;
  extent extent_;
  checkpoint_info resumed_;
  run_origin origin_;
  std::optional<loader> data_;
  std::optional<loader> validation_;
  std::optional<batch_feed> feed_, validation_feed_;
  std::unique_ptr<gradient_step> gradient_;
  std::unique_ptr<evaluation> held_out_;
  std::unique_ptr<checkpoint_writer> checkpoints_;
  std::unique_ptr<step_log> log_;
  std::unique_ptr<progress> progress_;
  rate_schedule schedule_;
  double start_seconds_ = 0, mark_seconds_ = 0, most_seconds_ = INFINITY;
  int64_t held_out_every_ = 0, held_out_batches_ = 0, steps_taken_ = 0;
  period save_every_;
  keep_policy keep_;
  double loss_ = NAN, held_out_loss_ = NAN, best_held_out_loss_ = NAN; // of the last step
  double saved_seconds_ = 0;                                           // when, or the run began
  double looked_seconds_ = 0;                                          // at the folder
  loss_statistics losses_;                           // of the steps that were taken
  int64_t skipped_steps_ = 0, skipped_in_a_row_ = 0; // of the whole run, and just before
  int64_t saved_step_ = -1, last_step_ = 0;          // that was taken
  int end_request_ = no_request;                     // before the last step of the run
  bool has_own_checkpoint_ = false;                  // from which it goes on
  bool background_ = false;
  bool writes_ = false;      // a checkpoint, in the background
  bool save_due_ = false;    // and waits for a finite step
  bool prunes_next_ = false; // once a step from the newest checkpoint was finite
  bool log_lacks_lines_ = false;
  int exit_code_ = exit_success;
};

// Finds the run's folder and the checkpoint to go on from, before anything is allocated.
void trainer::find_extent() {
  extent_.order.seed = options_.seed;
  std::string path;
  run_.ranks.together([&] {
    choice_ = choose_run(run_.prog, options_);
    if (!run_.is_first())
      return;
    if (choice_.folder.empty())
      choice_.folder = next_run(run_.prog);
    bool goes_on = choice_.goes_on();
    bool takes_over = goes_on || options_.overwrite;
    if (dry_)
      check_run_folder(choice_.folder, takes_over);
    else
      folder_.emplace(choice_.folder, takes_over);
    origin_.parameters = whole_path(options_.initialise);
    if (choice_.checkpoint.empty())
      return;
    std::string where = checkpoints_of(choice_.folder);
    if (goes_on && !dry_)
      recover_checkpoints(where);
    auto warn = [&](const std::string &text) { run_.warn(text); };
    path = find_checkpoint(choice_.checkpoint, where, run_.prog, warn).path;
    if (path.empty() && options_.resume == "latest" && holds_run(choice_.folder))
      throw failure(exit_checkpoint, choice_.folder +
                                         ": its log has steps, but no checkpoint is there\n  try: "
                                         "to bring its checkpoints back, --resume auto to begin "
                                         "anew if it never had one, or --overwrite");
    if (path.empty() && has_saved(choice_.folder))
      throw failure(exit_checkpoint,
                    where + ": the run has had a checkpoint, and none is there\n  try: to bring "
                            "its checkpoints back (a disk that is not mounted?), or --overwrite "
                            "without --resume");
    if (!path.empty() && goes_on && choice_.checkpoint != "latest") // the newest that is whole
      refuse_older(path, where);
    choose_origin(path);
  });
  path = run_.ranks.broadcast(path);
  origin_ = {run_.ranks.broadcast(origin_.checkpoint), run_.ranks.broadcast(origin_.parameters)};
  if (path.empty() && origin_.checkpoint.empty())
    return;
  has_own_checkpoint_ = choice_.goes_on() && !path.empty();
  if (path.empty())
    path = origin_.checkpoint;
  run_.ranks.together([&] { resumed_ = read_manifest(path); });
  extent_.first = resumed_.step;
  saved_step_ = has_own_checkpoint_ ? resumed_.step : -1;
  skipped_steps_ = resumed_.skipped_steps;
  extent_.order.seed = resumed_.order.seed;
  losses_ = resumed_.losses;
}

// What the run begins with, or, if it has a checkpoint at `path`, began with.
void trainer::choose_origin(const std::string &path) {
  if (!choice_.goes_on()) {
    origin_.checkpoint = whole_path(path);
    return;
  }
  run_origin before = origin_of(choice_.configuration());
  if (!path.empty() || origin_.parameters.empty())
    origin_ = before;
  if (!path.empty())
    return;
  const std::string &from = origin_.checkpoint.empty() ? origin_.parameters : origin_.checkpoint;
  run_.warn(checkpoints_of(choice_.folder) + ": holds no checkpoint yet; training begins with " +
            (from.empty() ? "the initial parameters" : from));
}

// Going on from an older checkpoint would cut off the work after it.
void trainer::refuse_older(const std::string &path, const std::string &where) const {
  int64_t step = read_manifest(path).step;
  for (const checkpoint_info &other : list_checkpoints(where, [](const std::string &) {}))
    if (other.step > step)
      throw failure(exit_usage,
                    format_text("%s: the run has gone on to step %" PRId64
                                "\n  try: --resume latest, or --run DIR to branch off in another "
                                "folder",
                                path.c_str(), other.step));
}

// The batches of a step stay what they were, whatever the number of ranks is now.
void trainer::find_layout() {
  const pipeline *stages = run_.prog.stages;
  layout_ = {stage_layout(run_.prog, run_.ranks.rank(), run_.ranks.size()).replicas,
             stages ? stages->micro_batches : options_.micro_batches};
  std::string before = choice_.configuration();
  auto known = resumed_.path.empty() || before.empty() || options_.given.count("micro-batches")
                   ? std::nullopt
                   : layout_of(before);
  if (stages && known && known->batches() != layout_.batches())
    throw failure(exit_usage,
                  format_text("a step of this run takes %" PRId64 " batches, and %" PRId64
                              " of this program (%" PRId64 " replicas x %" PRId64
                              " micro-batches)\n  try: another number of ranks, or --micro-batches "
                              "%" PRId64 " for steps of another size",
                              known->batches(), layout_.batches(), layout_.ranks,
                              layout_.micro_batches, layout_.micro_batches));
  if (stages || !known || known->ranks == layout_.ranks)
    return;
  if (known->batches() % layout_.ranks != 0)
    throw failure(exit_usage,
                  format_text("a step of this run takes %" PRId64 " batches (%" PRId64
                              " ranks x %" PRId64 " micro-batches), which %" PRId64
                              " ranks cannot share evenly\n  try: another number of ranks, or "
                              "--micro-batches N for steps of another size",
                              known->batches(), known->ranks, known->micro_batches, layout_.ranks));
  layout_.micro_batches = known->batches() / layout_.ranks;
  run_.warn(format_text("%" PRId64 " ranks x %" PRId64 " micro-batches, were %" PRId64 " x %" PRId64
                        ": the same batches a step",
                        layout_.ranks, layout_.micro_batches, known->ranks, known->micro_batches));
}

std::vector<std::pair<std::string, std::string>> trainer::describe_data() const {
  int64_t samples = data_->samples(data_part::training),
          rest = data_->left_out(data_part::training);
  std::string text = format_text("%" PRId64 " samples, %.8g batches an epoch", samples,
                                 data_->batches_per_epoch());
  if (rest > 0)
    text += format_text("; %" PRId64 " samples of each epoch fill no batch and are left out", rest);
  std::vector<std::pair<std::string, std::string>> rows = {{"training data", text}};
  if (held_out_every_ == 0)
    return rows;
  const loader &other = validation_ ? *validation_ : *data_;
  data_part part = validation_ ? data_part::all : data_part::held_out;
  text = format_text("%" PRId64 " samples in %" PRId64 " batches", other.samples(part),
                     held_out_batches_);
  if (int64_t left = other.left_out(part); left > 0)
    text += format_text("; the last %" PRId64 " fill no batch and are left out", left);
  rows.emplace_back("held-out data", text);
  return rows;
}

// The position in the data, which is counted in samples.
void trainer::find_position() {
  std::string before = choice_.configuration();
  sample_order &order = extent_.order;
  order.samples_per_batch = data_->samples_per_batch();
  order.number = before.empty() ? resumed_.order.number : data_order_of(before);
  order.number += options_.new_data ? 1 : 0;
  if (resumed_.path.empty())
    return;
  bool says_seed =
      options_.given.count("seed") || (!before.empty() && !kept_option(before, "seed").empty());
  if (says_seed && options_.seed != order.seed)
    throw failure(exit_usage, format_text("option --seed: the checkpoint's run has seed %" PRIu64
                                          "; another would change the order of the data",
                                          order.seed));
  if (options_.new_data)
    return;
  if (!before.empty())
    check_same_order(run_.prog, before, run_.table, options_);
  if (order.number != resumed_.order.number)
    return run_.warn("the checkpoint was written before --new-data: their order begins anew");
  int64_t size = resumed_.order.samples_per_batch > 0 ? resumed_.order.samples_per_batch
                                                      : order.samples_per_batch;
  extent_.batches_taken = data_->batch_after(resumed_.batches_taken, size);
}

void trainer::settle_last_step() {
  int64_t per_step = layout_.batches();
  run_.ranks.together([&] {
    int64_t per_epoch = data_->batches(data_part::training);
    if (per_epoch < per_step)
      throw failure(exit_data,
                    format_text("the training data has %" PRId64 " batches of %" PRId64
                                " samples, but one step takes %" PRId64 " (%d ranks x %" PRId64
                                " micro-batches)\n  try: more data, or "
                                "fewer ranks or micro-batches",
                                per_epoch, data_->samples_per_batch(), per_step, run_.ranks.size(),
                                layout_.micro_batches));
    double batches = options_.epochs ? *options_.epochs * data_->batches_per_epoch() : 0;
    auto left = batches - static_cast<double>(extent_.batches_taken);
    extent_.last = options_.steps
                       ? *options_.steps
                       : extent_.first + static_cast<int64_t>(std::max(
                                             0.0, std::ceil(left / static_cast<double>(per_step))));
    held_out_every_ = options_.evaluate_every;
    if (held_out_every_ > 0)
      held_out_batches_ =
          validation_ ? validation_->batches(data_part::all) : data_->batches(data_part::held_out);
    if (int64_t most = options_.validation_batches; most > 0)
      held_out_batches_ = std::min(held_out_batches_, most);
  });
}

// Whether they are those of the run.
void trainer::check_data() const {
  std::string before = choice_.configuration();
  if (!run_.is_first() || resumed_.path.empty() || before.empty())
    return;
  if (!options_.new_data)
    check_same_data(before, data_use::training, data_->identities());
  const bool is_said =
      options_.given.count("validation-data") || options_.given.count("validation-tokens");
  if (validation_ && !is_said)
    check_same_data(before, data_use::validation, validation_->identities());
}

// What is to be done. Changes nothing of the run.
void trainer::decide() {
  run_.ranks.together([&] { check_train_options(options_); });
  run_.check_stages();
  find_extent();
  run_.ranks.together([&] { find_layout(); });
  data_.emplace(run_.open_data(!options_.no_shuffle, extent_.order.seed,
                               /*partial_batches=*/true));
  bool has_buffers = false;
  for (int64_t i = 0; i < run_.prog.parameter_count; ++i)
    has_buffers |= run_.prog.parameters[i].role == parameter_role::buffer;
  if (has_buffers && options_.rest == leftovers::pad)
    run_.warn("option --leftovers pad: statistics of a batch (BatchNormalization) count the rows "
              "that fill up the last one, which repeat its last sample");
  if (std::optional<loader> other = run_.open_validation_data())
    validation_.emplace(std::move(*other));
  run_.ranks.together([&] { find_position(); });
  settle_last_step();
}

int trainer::nothing_to_do() const {
  if (run_.is_first())
    printf("nothing to do: the checkpoint is at step %" PRId64 " of %" PRId64 "\n", extent_.first,
           extent_.last);
  return exit_success;
}

void trainer::set_up() {
  bool saves = !options_.no_checkpoints && !dry_;
  background_ = saves && !options_.no_background;
  int64_t snapshot =
      background_ ? checkpoint_writer::snapshot_bytes(run_.prog, run_.ranks.size()) : 0;
  int64_t feeds = (validation_ ? 2 : 1) * batch_feed::bytes(run_.prog, run_.target);
  run_.target.allocate(memory_use::training, layout_.micro_batches, snapshot + feeds);
  feed_.emplace(run_.prog, run_.target, *data_);
  gradient_ = std::make_unique<gradient_step>(run_, *feed_, layout_.micro_batches,
                                              extent_.order.seed, options_.mean_per_batch);
  if (validation_)
    validation_feed_.emplace(run_.prog, run_.target, *validation_);
  held_out_ = validation_ ? std::make_unique<evaluation>(run_, *validation_, *validation_feed_)
                          : std::make_unique<evaluation>(run_, *data_, *feed_);
  if (resumed_.path.empty()) {
    run_.load_initial_parameters();
    if (!origin_.parameters.empty())
      run_.load_parameters_from(origin_.parameters);
  } else
    run_.ranks.together(
        [&] { load_tensors(resumed_, state_tensors(run_.prog, run_.places()), run_.target); });

  schedule_ = schedule_of(options_, extent_.last);
  save_every_ = options_.checkpoint_every;
  keep_ = options_.keep;
  if (options_.max_minutes)
    most_seconds_ = *options_.max_minutes * 60;
  if (saves)
    checkpoints_ = std::make_unique<checkpoint_writer>(
        run_.prog, run_.places(), run_.target, run_.ranks, real_file_operations(),
        checkpoints_of(run_.ranks.broadcast(choice_.folder)), keep_, extent_.order, background_);
  run_.ranks.together([&] {
    if (run_.is_first() && !options_.no_checkpoints)
      check_space();
  });
}

// One more checkpoint must fit beside those that are there.
void trainer::check_space() const {
  const int64_t needed = checkpoint_writer::snapshot_bytes(run_.prog, /*ranks=*/1);
  const std::optional<int64_t> available = available_bytes(existing_part(choice_.folder));
  if (!available || *available >= needed)
    return;
  std::string text = choice_.folder + ": a checkpoint needs " + byte_text(needed) + ", " +
                     byte_text(*available) + " are available";
  if (dry_)
    throw failure(exit_disk,
                  text + "\n  try: free space, --run DIR elsewhere, or --no-checkpoints");
  run_.warn(text);
}

// The one place that changes the folder of a run, once nothing stands against the new work. What
// the run is from now on is written last: until then a resumed one is what it was.
void trainer::begin() {
  progress_ = std::make_unique<progress>(options_.no_progress || !run_.is_first(), extent_.first,
                                         extent_.last, options_.display_every);
  const bool changes = run_.is_first() && !dry_;
  run_.ranks.together([&] {
    if (changes && !choice_.goes_on())
      folder_->clear();
  });
  if (checkpoints_)
    checkpoints_->open(has_own_checkpoint_ ? resumed_.sequence : UINT64_MAX);
  prunes_next_ = choice_.goes_on();
  run_.ranks.together([&] {
    log_ = std::make_unique<step_log>(changes ? log_of(choice_.folder) : "", extent_.first);
    if (changes)
      folder_->write_configuration(
          run_.prog, run_.table, options_,
          {layout_, data_->identities(),
           validation_ ? validation_->identities() : std::vector<data_identity>(),
           extent_.order.number, origin_});
  });
}

// A step that is not finite, or whose loss is a spike, left everything as it was. Goes on with the
// next, to a limit.
void trainer::note_skipped(int64_t step, const step_result &result, bool is_spike) {
  ++skipped_steps_;
  ++skipped_in_a_row_;
  bool is_loss = !std::isfinite(result.loss) || is_spike;
  const double value = is_loss ? result.loss : result.gradient_norm;
  std::string text =
      format_text("step %" PRId64 ": the %s is %g", step, is_loss ? "loss" : "gradient norm",
                  std::isnan(value) ? NAN : value); // of no sign
  if (is_spike)
    text += format_text(", above %g, which is %g standard deviations above the mean",
                        losses_.limit(options_.spike_limit), options_.spike_limit);
  if (skipped_in_a_row_ == 1) {
    progress_->finish();
    run_.warn(text + ": the step is skipped");
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

// At the first line that is lost.
void trainer::note_log() {
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
  held_out_loss_ = NAN; // until it is evaluated

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
                        !result.applied};
  log_->write(record);
  note_log();
  progress_->step(record);
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

// Like a signal: the ranks agree on it in the step, or between two batches of an evaluation.
void trainer::ask_for_end() const {
  if (seconds_now() - start_seconds_ >= most_seconds_)
    request(time_request);
}

// Of the first rank's clock; the ranks hear of it in the step, like of a signal.
void trainer::ask_for_save() const {
  bool is_over = seconds_now() - saved_seconds_ >= save_every_.count * 60;
  if (run_.is_first() && save_every_.of == period::minutes && save_every_.count > 0 && is_over)
    request(period_request);
  if (writes_ && checkpoints_->is_busy())
    request(writing_request);
}

// Of the first rank, likewise.
void trainer::look_at_folder() {
  if (!folder_ || seconds_now() - looked_seconds_ < look_seconds)
    return;
  looked_seconds_ = seconds_now();
  log_->look();
  if (!folder_->is_there())
    request(gone_request);
}

void trainer::give_up() const {
  throw failure(exit_disk,
                run_.is_first()
                    ? choice_.folder + ": was moved or removed while its run went on, which can "
                                       "keep nothing any more\n  try: --resume latest where it is "
                                       "now, and to leave the folder of a run where it is"
                    : "",
                /*everywhere=*/true);
}

bool trainer::save_is_due(int64_t step) const {
  if (save_every_.count == 0 || save_every_.of == period::minutes)
    return false;
  if (save_every_.of == period::steps)
    return step % static_cast<int64_t>(save_every_.count) == 0;
  double batches = save_every_.count * data_->batches_per_epoch();
  auto periods = [&](int64_t taken) { return std::floor(static_cast<double>(taken) / batches); };
  return periods(batch_of(step + 1)) > periods(batch_of(step));
}

// Returns requests that came meanwhile (signal_request bits); then nothing is shown.
int trainer::show_held_out(int64_t step) {
  int requests =
      (*held_out_)(validation_ ? data_part::all : data_part::held_out, held_out_batches_, [this] {
        ask_for_end();
        return take_signal_requests();
      });
  if (validation_) {
    feed_->forget();
    validation_feed_->forget();
  }
  if (requests != no_request)
    return requests;
  double loss = held_out_->results()[0].value;
  held_out_loss_ = loss;
  bool is_best = !(loss >= best_held_out_loss_);
  if (is_best)
    best_held_out_loss_ = loss;
  save_due_ |= is_best && keep_.best_by == checkpoint_metric::held_out_loss;
  log_->write_held_out(step, held_out_->results());
  progress_->held_out(step, held_out_->results());
  return no_request;
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
  checkpoints_->begin({step, batch_of(step + 1), skipped_steps_, loss_, held_out_loss_, losses_});
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
  const char *advice = diverged ? "\n  try: a lower --learning-rate, or --clip-norm 1; "
                                : "\n  try: free space, or --run DIR elsewhere; ";
  if (last || diverged)
    throw failure(diverged ? exit_diverged : exit_disk,
                  run_.is_first() ? problem + advice + "the checkpoints before it are as they were"
                                  : "",
                  /*everywhere=*/true);
  progress_->finish();
  run_.warn(problem + "; training goes on, the checkpoints before it are as they were");
}

// What the steps reach, and behind the work of the run what the machine would.
void trainer::show_rate(double rate, double steps_seconds) {
  printf("%.3g GFLOP/s a rank in the steps", rate * 1e-9);
  const double most = steps_seconds < measured_from_seconds ? 0 : run_.target.product_rate();
  if (most > 0) {
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
  run_.watch.now(activity::computing); // what went before counts
  double data = feed_->seconds_of_data();
  auto spent = [&](activity what) { return run_.watch.seconds_of(what); };
  run_summary summary = {steps_taken_,
                         skipped_steps_,
                         seconds_now() - start_seconds_,
                         peak_resident_bytes(),
                         spent(activity::computing) - data,
                         data,
                         spent(activity::exchanging),
                         spent(activity::evaluating),
                         spent(activity::saving)};
  const double steps_seconds = summary.seconds - summary.evaluating - summary.saving;
  summary.rate = run_.prog.micro_batch_flops * static_cast<double>(gradient_->batches_per_step()) *
                 static_cast<double>(steps_taken_) / run_.ranks.size() / steps_seconds;
  if (exit_code_ == exit_stopped)
    summary.ended = end_request_ & stop_request ? "preempted" : "max-time";
  log_->write_summary(summary);
  if (exit_code_ == exit_stopped)
    printf("stopped by %s at step %" PRId64 " of %" PRId64 "; %s\n",
           end_request_ & stop_request ? "a signal" : "--max-time", last_step_, extent_.last,
           checkpoints_ ? "--resume latest goes on" : "without a checkpoint");
  printf("%" PRId64 " steps in %.1f s: computing %.1f, data %.1f, exchanging gradients %.1f, "
         "evaluating %.1f, checkpoints %.1f\n",
         summary.steps, summary.seconds, summary.computing, summary.data, summary.exchanging,
         summary.evaluating, summary.saving);
  if (summary.rate > 0)
    show_rate(summary.rate, steps_seconds);
  if (skipped_steps_ > 0)
    printf("skipped, their loss or gradient not finite or a spike: %" PRId64 " steps of the run\n",
           skipped_steps_);
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

} // namespace

int train(run &run) {
  trainer trainer(run);
  return run.watch.supervise([&] { return trainer(); });
}

} // namespace trainc
