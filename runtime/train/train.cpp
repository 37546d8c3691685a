// SPDX-License-Identifier: Apache-2.0
//
// `train`: a run from its plan to its summary. The loop is here; what it looks at between steps
// (saves, evaluations, samples of text, the folder, skipped steps) has classes of its own beside.
#include "runtime/checkpoint/module_weights.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/commands/commands.h"
#include "runtime/files/run_files.h"
#include "runtime/process/clock.h"
#include "runtime/process/signals.h"
#include "runtime/run/agreement.h"
#include "runtime/step/gradient_step.h"
#include "runtime/step/update_scalars.h"
#include "runtime/train/held_out_watch.h"
#include "runtime/train/run_output.h"
#include "runtime/train/run_plan.h"
#include "runtime/train/same_run.h"
#include "runtime/train/save_schedule.h"
#include "runtime/train/skipped_steps.h"
#include "runtime/train/step_watches.h"
#include "runtime/train/summary.h"
#include "runtime/train/text_samples.h"

#include <cinttypes>
#include <cmath>
#include <ctime>
#include <optional>
#include <unistd.h>

namespace trainc {
namespace {

constexpr int end_requests = stop_request | time_request; // of signal_request

bool has_passed(const period &every, double since_seconds) {
  return every.of == period::minutes && every.count > 0 &&
         seconds_now() - since_seconds >= every.count * 60;
}

run_start start_of(const run &run) {
  const time_t now = time(nullptr);
  tm parts = {};
  char date[32] = {};
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  return {date, host_name(), run.target.description(), run.options.words};
}

// No other start has it.
std::string name_of(const run_start &start) {
  return format_text("%s-%s-%d", start.date.c_str(), start.host.c_str(), getpid());
}

// Those of a configuration may have been edited.
std::vector<name_change> changes_of(const std::vector<std::string> &renames) {
  std::vector<name_change> changes;
  for (const std::string &words : renames) {
    std::string why;
    std::optional<name_change> change = name_change::parse(words, why);
    if (!change)
      throw failure(exit_usage, "option --rename: '" + words + "': " + why);
    changes.push_back(std::move(*change));
  }
  return changes;
}

// Takes what the origin's file has of the parameters, under the names that its changes give
// (checkpoint/module_weights.h). Collective. Throws `failure` (exit_checkpoint).
void take_initial_values(run &run, const run_origin &origin) {
  const std::string &path = origin.parameters;
  std::string content;
  run.ranks.together([&] {
    const file_content own = content_of_weights(path);
    content =
        format_text("%lld bytes with digest %08x", static_cast<long long>(own.bytes), own.digest);
  });
  refuse_differences(run.ranks, {{"option --initialise", content, path}}, exit_checkpoint);
  run.ranks.together([&] {
    read_weights(
        run.prog, run.places(), run.target, path, [&](const std::string &text) { run.warn(text); },
        changes_of(origin.renames));
  });
}

// The numbers that a step reads and that change from step to step: rates, other hyperparameters,
// limits.
class step_scalars {
public:
  step_scalars(run &run, const rate_schedule &schedule) : run_(run), schedule_(schedule) {}

  double rate(int64_t step) const { return schedule_(step); }
  const rate_schedule &schedule() const { return schedule_; }

  // `updates`: those taken until then, with this one; `batches`: those of a step; `loss_limit`: a
  // larger loss is a spike; `loss_scale`: of programs that have one.
  void set(int64_t step, int64_t updates, int64_t batches, double loss_limit, double loss_scale) {
    const trainer_options &options = run_.options;
    auto rate = [&](const std::optional<double> &peak) {
      rate_schedule own = schedule_;
      own.peak = peak.value_or(schedule_.peak);
      return own(step);
    };
    for (int64_t i = 0; i < std::ssize(run_.prog.hyperparameters); ++i)
      run_.target.set_scalar(run_.prog.hyperparameters[i].offset,
                             hyperparameter_value(run_.prog, options.hyperparameters, i, rate));
    set_update_scalars(run_.target, run_.prog,
                       {schedule_(step), updates, batches, options.clip_norm, options.clip_value,
                        loss_limit, loss_scale});
  }

private:
  run &run_;
  rate_schedule schedule_;
};

class trainer {
public:
  // Takes all memory and loads the parameters. Changes nothing of the run's folder. Collective.
  trainer(run &run, const run_plan &plan, run_sources &sources);

  int operator()(); // an exit code

private:
  void allocate();
  void load_parameters();
  void begin();
  std::string configuration_of_start(const run_start &start) const;
  void train_to_the_end();
  void take_steps();
  int take_step(int64_t step);
  void note_step(int64_t step, const step_result &result, double began_seconds);
  void ask_for_end() const;
  void ask_in_steps();
  int evaluate(int64_t step);
  int write_sample(int64_t step);
  bool show(int64_t step, int (trainer::*work)(int64_t), bool is_saved);
  template <typename Work> int or_save(int64_t done, Work work);
  // `skipped_after`: how many steps were taken since, and skipped.
  run_position position_at(int64_t step, int64_t skipped_after = 0) const;
  run_end end();
  void save(int64_t step) { saves_.save(position_at(step), is_last(step)); }
  void save_evaluation(int64_t step);

  bool keeps_checkpoints() const { return !options_.no_checkpoints && !options_.dry_run; }
  bool is_due(const period &every, int64_t step) const;
  bool is_evaluated(int64_t step, int requests) const;
  bool is_sampled(int64_t step) const { return text_ && step % options_.sample_every == 0; }
  bool is_last(int64_t step) const {
    return step == plan_.last || end_request_ != no_request ||
           is_stale(options_, held_out_->best());
  }
  int64_t batch_of(int64_t step) const {
    return plan_.batches_taken + (step - 1 - plan_.first) * gradient_->batches_per_step();
  }

  run &run_;
  const trainer_options &options_;
  const run_plan &plan_;
  run_sources &sources_;
  run_output output_;
  folder_watch folder_;
  save_schedule saves_;
  skipped_steps skipped_;
  step_scalars scalars_;
  std::optional<batch_feed> feed_;
  std::optional<gradient_step> gradient_;
  std::optional<held_out_watch> held_out_;
  std::optional<text_samples> text_; // where samples are asked for
  std::optional<step_watches> watches_;

  double loss_;                          // of the last step
  int64_t last_step_;                    // that was taken
  int64_t steps_taken_ = 0;              // since the start
  int end_request_ = no_request;         // before the last step of the run
  double start_seconds_ = seconds_now(); // by the clock
  double data_ = 0, exchanging_ = 0;     // seconds, of evaluations and samples
};

trainer::trainer(run &run, const run_plan &plan, run_sources &sources)
    : run_(run), options_(run.options), plan_(plan), sources_(sources),
      output_(run, plan.first, plan.last),
      folder_(sources.folder ? &*sources.folder : nullptr, output_),
      saves_(run, plan, output_, folder_), skipped_(run, plan, output_),
      scalars_(run, schedule_of(run.options, plan.run_last)), loss_(plan.resumed.loss),
      last_step_(plan.first) {
  allocate();
  load_parameters();
  if (keeps_checkpoints())
    saves_.set_up(*sources_.groups);
  run_.ranks.together([&] {
    if (sources_.groups->keeps() && !options_.no_checkpoints)
      saves_.check_space(*sources_.groups);
    if (run_.is_first())
      warn_of_rate(run_, plan_, scalars_.schedule(), *sources_.data);
  });
}

void trainer::allocate() {
  const bool copies =
      keeps_checkpoints() && (!options_.no_background || run_.target.keeps_state_in_parts());
  const int64_t snapshot =
      copies ? checkpoint_writer::snapshot_bytes(run_.prog, sources_.groups->members().size()) : 0;
  const int64_t feeds = (sources_.validation ? 2 : 1) * batch_feed::bytes(run_.prog, run_.target);
  run_.target.allocate(memory_use::training, plan_.layout.micro_batches, snapshot + feeds);
  feed_.emplace(run_.prog, run_.target, *sources_.data);
  gradient_.emplace(run_, *feed_, plan_.layout.micro_batches, plan_.order.seed,
                    options_.mean_per_batch);
  held_out_.emplace(run_, plan_, sources_, *feed_, output_);
  if (options_.sample_every > 0)
    run_.ranks.together([&] { text_.emplace(run_, plan_.order.seed, *feed_, output_); });
  watches_.emplace(run_, plan_, output_);
}

void trainer::load_parameters() {
  if (!plan_.resumed.path.empty()) {
    run_.map_frozen_weights();
    return run_.ranks.together([&] {
      check_frozen_weights(plan_.resumed, run_.prog, run_.places());
      load_tensors(plan_.resumed, state_tensors(run_.prog, run_.places()), run_.target);
    });
  }
  run_.load_initial_parameters();
  if (!plan_.origin.parameters.empty())
    take_initial_values(run_, plan_.origin);
}

// One of all hosts, as the first rank sees the run.
std::string trainer::configuration_of_start(const run_start &start) const {
  std::string id = plan_.choice.goes_on() && plan_.before ? plan_.before->configuration.id : "";
  if (id.empty())
    id = name_of(start);
  return configuration_text(
      run_.prog, run_.table, options_,
      {id, plan_.layout, sources_.data->identities(),
       sources_.validation ? sources_.validation->identities() : std::vector<data_identity>(),
       plan_.order.number, plan_.order.seed, plan_.origin, start});
}

// Changes what the run keeps, once nothing stands against the new work. What the run is from now on
// is written last: until then a resumed one is what it was.
void trainer::begin() {
  std::optional<run_folder> &own_folder = sources_.folder;
  run_.ranks.together([&] {
    if (own_folder && !plan_.choice.goes_on())
      own_folder->clear();
  });
  const run_start start = start_of(run_);
  saves_.open(run_.ranks.broadcast(name_of(start)));
  const std::string configuration = run_.ranks.broadcast(configuration_of_start(start));
  run_.ranks.together([&] {
    const std::string &folder = plan_.choice.folder;
    const bool changes = run_.is_first() && !options_.dry_run;
    if (changes)
      own_folder->begin_samples(plan_.first, /*writes=*/text_.has_value());
    if (changes && text_)
      text_->open(folder);
    output_.open_log(changes ? log_of(folder) : "", plan_.first);
    output_.log->expect(held_out_->results());
    warn_of_log(run_, plan_, *output_.log);
    if (own_folder)
      own_folder->write_configuration(configuration);
    if (changes)
      output_.events.begin(run_, plan_, held_out_->results(), gradient_->batches_per_step());
  });
  watches_->begin(*feed_, saves_);
  run_.print_table(describe_data(options_, plan_, sources_), plan_.layout.micro_batches);
  start_seconds_ = seconds_now();
  held_out_->begin();
}

int trainer::operator()() {
  try {
    begin();
    train_to_the_end();
    return summarize(run_, plan_, output_, end());
  } catch (const std::exception &error) {
    log_failure(run_, output_, end(), as_failure(error));
    throw;
  }
}

void trainer::train_to_the_end() {
  try {
    take_steps();
  } catch (const failure &error) {
    output_.shown.finish(); // the message has a line of its own
    if (error.everywhere)   // else the other ranks would not be there
      saves_.finish();
    throw;
  }
  output_.shown.finish();
  watches_->finish(last_step_);
  folder_.look_at_the_end();
}

run_end trainer::end() {
  run_.watch.now(activity::computing); // what went before counts
  return {steps_taken_,
          last_step_,
          skipped_.all(),
          gradient_->batches_per_step(),
          end_request_,
          saves_.saves(),
          held_out_->best(),
          seconds_now() - start_seconds_,
          feed_->seconds_of_data() - data_,
          exchanging_,
          skipped_.scale().factor};
}

void trainer::take_steps() {
  // A kill or a request may have come before.
  if (plan_.has_own_checkpoint && is_sampled(last_step_))
    show(last_step_, &trainer::write_sample, /*is_saved=*/true);
  if (plan_.has_own_checkpoint && is_due(options_.evaluate_every, last_step_) &&
      plan_.resumed.evaluated.empty()) {
    show(last_step_, &trainer::evaluate, /*is_saved=*/true);
    save_evaluation(last_step_);
  }
  while (!is_last(last_step_)) {
    const int64_t step = last_step_ + 1;
    ask_in_steps();
    const int requests = or_save(step - 1, [&] { return take_step(step); });
    last_step_ = step;
    if (requests & gone_request)
      folder_.give_up();
    saves_.proceed(requests);
    end_request_ |= requests & end_requests;
    if (is_due(options_.checkpoint_every, step) || (requests & period_request))
      saves_.want();
    bool is_saved = requests & (checkpoint_request | end_requests);
    if (is_saved) // who asked may not wait for more
      save(step);
    if (is_sampled(step))
      is_saved = show(step, &trainer::write_sample, is_saved);
    if (is_evaluated(step, requests)) {
      is_saved = show(step, &trainer::evaluate, is_saved);
      save_evaluation(step);
    }
    if (!is_saved && (is_last(step) || (saves_.is_wanted() && skipped_.is_last_taken())))
      save(step);
  }
  saves_.finish();
}

int trainer::take_step(int64_t step) {
  const double began_seconds = seconds_now();
  output_.current_step = step;
  run_.watch.begin_step(step);
  const int64_t updates = step - skipped_.all(); // a skipped step is none
  scalars_.set(step, updates, gradient_->batches_per_step(), skipped_.loss_limit(),
               skipped_.scale().factor);
  watches_->begin_step(step, *gradient_);
  const step_result result = gradient_->with_update(data_part::training, batch_of(step), step);
  watches_->end_step(step, *gradient_);
  ++steps_taken_;
  loss_ = result.loss;
  note_step(step, result, began_seconds);
  watches_->note_step(step);
  return result.requests;
}

// Says it, and whether it was taken: the sign of the gradient's norm tells that the loss was a
// spike.
void trainer::note_step(int64_t step, const step_result &found, double began_seconds) {
  step_result result = found;
  const bool is_spike = result.applied && std::signbit(result.gradient_norm);
  result.gradient_norm = std::abs(result.gradient_norm);
  result.applied &= !is_spike;
  const double seconds = seconds_now() - began_seconds;
  auto per_second = [&](int64_t per_batch) {
    return static_cast<double>(per_batch * gradient_->batches_per_step()) / seconds;
  };
  const step_record record = {step,
                              result.loss,
                              result.gradient_norm,
                              scalars_.rate(step),
                              seconds * 1e3,
                              per_second(sources_.data->samples_per_batch()),
                              per_second(sources_.data->tokens_per_batch()),
                              !result.applied,
                              run_.target.last_exchange().since(began_seconds),
                              watches_->norms_of_groups(),
                              skipped_.scale().factor};
  if (step % options_.log_every == 0 || step == plan_.last || record.skipped ||
      (result.requests & end_requests) || !record.group_norms.empty()) {
    output_.log->write(record);
    output_.events.write(record, skipped_.all() + record.skipped);
  }
  output_.look_at_files(plan_.choice.folder);
  output_.shown.step(record, is_evaluated(step, result.requests));
  if (!result.applied)
    return skipped_.note_skipped(step, result, is_spike, batch_of(step), *gradient_,
                                 saves_.saves());
  skipped_.note_taken(result.loss);
  saves_.prune();
}

// Bad data end a run, at once or after steps that were skipped; what it has learnt before them, in
// its steps to `done`, is sound and stays.
template <typename Work> int trainer::or_save(int64_t done, Work work) {
  try {
    return work();
  } catch (const failure &error) {
    const bool was_skipped = error.code == exit_diverged && skipped_.are_of_data();
    if (!error.everywhere || (error.code != exit_data && !was_skipped))
      throw;
    const int64_t skipped = was_skipped ? skipped_.in_a_row() : 0,
                  sound = was_skipped ? done + 1 - skipped : done;
    if (sound > plan_.first)
      saves_.save(position_at(sound, skipped), /*last=*/false);
    throw;
  }
}

// Like a signal: the ranks agree on it in the step, or between two batches of an evaluation.
void trainer::ask_for_end() const {
  if (options_.max_minutes && seconds_now() - start_seconds_ >= *options_.max_minutes * 60)
    request(time_request);
}

// Of the first rank's clock and folder; the ranks hear of it in the step, as of a signal.
void trainer::ask_in_steps() {
  ask_for_end();
  if (run_.is_first() && has_passed(options_.checkpoint_every, saves_.saved_seconds()))
    request(period_request);
  if (run_.is_first() && has_passed(options_.evaluate_every, held_out_->evaluated_seconds()))
    request(evaluation_request);
  saves_.ask_to_wait();
  folder_.look();
}

// By steps or epochs; what is by time is asked for.
bool trainer::is_due(const period &every, int64_t step) const {
  if (every.count == 0 || every.of == period::minutes)
    return false;
  if (every.of == period::steps)
    return step % static_cast<int64_t>(every.count) == 0;
  const double batches = every.count * sources_.data->batches_per_epoch();
  auto periods = [&](int64_t taken) { return std::floor(static_cast<double>(taken) / batches); };
  return periods(batch_of(step + 1)) > periods(batch_of(step));
}

bool trainer::is_evaluated(int64_t step, int requests) const {
  return evaluates(options_) && (step == plan_.last || (requests & evaluation_request) ||
                                 is_due(options_.evaluate_every, step));
}

// Returns requests that came meanwhile (signal_request bits); then nothing is shown. What is being
// written in the background is completed in its course, which may take hours.
int trainer::evaluate(int64_t step) {
  const auto mine = [this] {
    ask_for_end();
    saves_.ask_to_wait();
    folder_.look();
    return take_signal_requests();
  };
  const auto of_all = [this](int requests) {
    saves_.proceed(requests);
    return requests & ~writing_request;
  };
  const int requests = held_out_->evaluate(step, {mine, of_all});
  if (requests == no_request && held_out_->is_best(step) && is_of_evaluation(options_.keep.best_by))
    saves_.want();
  return requests;
}

int trainer::write_sample(int64_t step) {
  return text_->write(step, /*may_be_there=*/step == plan_.first, [this] {
    ask_for_end();
    folder_.look();
  });
}

// Does what takes its time, for which no request waits: it begins anew after the checkpoint, or is
// left out where the run ends. Returns whether there is a checkpoint that was asked for.
bool trainer::show(int64_t step, int (trainer::*work)(int64_t), bool is_saved) {
  while (end_request_ == no_request) {
    if (is_saved)
      saves_.finish(); // which else would end with the next step
    const double data = feed_->seconds_of_data();
    const double exchanging = run_.watch.seconds_of(activity::exchanging);
    const int requests = or_save(step, [&] { return (this->*work)(step); });
    data_ += feed_->seconds_of_data() - data;
    exchanging_ += run_.watch.seconds_of(activity::exchanging) - exchanging;
    if (requests == no_request)
      break;
    if (requests & gone_request)
      folder_.give_up();
    end_request_ |= requests & end_requests;
    is_saved = true;
    save(step);
  }
  return is_saved;
}

run_position trainer::position_at(int64_t step, int64_t skipped_after) const {
  best_evaluation best = held_out_->best();
  best.step = std::min(best.step, step); // steps that were skipped changed nothing
  return {step,
          batch_of(step + 1),
          skipped_.all() - skipped_after,
          skipped_after > 0 ? NAN : loss_,
          held_out_->results_of(step),
          skipped_.losses(),
          best,
          skipped_.scale()};
}

// A checkpoint that was written before the step's evaluation is written again, with its results.
void trainer::save_evaluation(int64_t step) {
  if (!held_out_->results_of(step).empty() && saves_.saved_step() == step)
    saves_.save_again(position_at(step), is_last(step));
}

int nothing_to_do(const run &run, const run_plan &plan, const std::string &why) {
  if (run.is_first())
    printf("nothing to do: the checkpoint is at step %" PRId64 " of %" PRId64 "%s; %s\n",
           plan.first, plan.last, why.empty() ? "" : (", " + why).c_str(),
           plan.choice.goes_on() ? "the run and its options stay as they are"
                                 : "no new run is made");
  return exit_success;
}

// What a run is made of. It outlives the supervision of the run: the end of a writer of checkpoints
// waits for its disk, and an error must be said before.
struct training {
  run_sources sources;
  run_plan plan;
  std::optional<trainer> work;

  int operator()(run &run) {
    plan = plan_run(run, sources);
    check_run_data(run, plan, sources);
    if (plan.is_at_last_step())
      return nothing_to_do(run, plan, "");
    if (!plan.resumed.path.empty() && is_stale(run.options, plan.best))
      return nothing_to_do(run, plan, text_of_patience(run.options, plan.best));
    plan.run_last = plan.last;
    if (run.options.dry_run)
      plan.last = plan.first + run.options.dry_run_steps;
    return work.emplace(run, plan, sources)();
  }
};

} // namespace

int train(run &run) {
  training training;
  return run.watch.supervise([&] { return training(run); });
}

} // namespace trainc
