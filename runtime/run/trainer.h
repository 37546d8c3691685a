// SPDX-License-Identifier: Apache-2.0
//
// A training run from its options to its summary. What is decided before the first step, and the
// set-up, are in train_begin.cpp; the loop is in train.cpp.
#pragma once

#include "runtime/options/schedule_rate.h"
#include "runtime/process/signals.h"
#include "runtime/run/evaluation.h"
#include "runtime/run/progress.h"
#include "runtime/run/run.h"
#include "runtime/run/run_choice.h"
#include "runtime/run/run_files.h"
#include "runtime/run/run_folder.h"
#include "runtime/run/sample_folder.h"
#include "runtime/run/step_log.h"
#include "runtime/run/text_writer.h"
#include "runtime/step/gradient_step.h"
#include "runtime/step/rank_report.h"

#include <cmath>
#include <memory>
#include <set>

namespace trainc {

// Where a run begins and ends.
struct extent {
  int64_t first = 0, last = 0; // steps first + 1 ... last are taken
  int64_t batches_taken = 0;   // before step first + 1, by all ranks
  sample_order order;          // that these are of
};

class trainer {
public:
  explicit trainer(run &run) : run_(run), options_(run.options), dry_(run.options.dry_run) {}

  int operator()(); // an exit code

private:
  void take_steps();

  void decide();
  bool is_at_last_step() const;
  int nothing_to_do() const;
  void set_up();
  void find_extent();
  void take_folder(bool takes_over);
  void choose_origin(const std::string &path);
  void hold_to(const run_origin &before);
  void warn_of_other_parameters(const run_origin &before) const;
  void refuse_older(const std::string &path, const std::string &where) const;
  void compare_computation() const;
  void find_layout();
  std::vector<std::pair<std::string, std::string>> describe_data() const;
  void find_position();
  void check_data();
  void check_space() const;
  void warn_of_rate() const;
  void warn_of_links() const;
  int64_t steps_between_lines() const;
  void begin();
  int64_t last_step_of(const trainer_options &options) const;
  void settle_last_step();
  void ask_for_end() const;
  void ask_for_save() const;
  void ask_for_evaluation() const;
  void ask_for_writing() const;
  void proceed_with_save(int requests);
  bool evaluates() const { return options_.evaluate_every.count > 0; }
  bool is_evaluated(int64_t step, int requests) const {
    return evaluates() && (step == extent_.last || (requests & evaluation_request) ||
                           is_due(options_.evaluate_every, step));
  }
  // Whether --patience is over.
  bool is_stale() const { return options_.patience > 0 && best_.later >= options_.patience; }
  bool is_last(int64_t step) const {
    return step == extent_.last || end_request_ != no_request || is_stale();
  }
  void look_at_folder();
  void look_at_bookkeeping();
  [[noreturn]] void give_up() const;
  bool is_due(const period &every, int64_t step) const;
  bool has_passed(const period &every, double since_seconds) const;
  std::string of_patience() const;
  template <typename Work> int or_save(int64_t done, Work work);
  int take_step(int64_t step);
  void note_log();
  std::string not_finite_data_of(int64_t step);
  void note_skipped(int64_t step, const step_result &result, bool is_spike);
  double hyperparameter_at(int64_t number, int64_t step) const;
  void set_scalars(int64_t step);
  int show_held_out(int64_t step);
  bool is_sampled(int64_t step) const { return text_ && step % options_.sample_every == 0; }
  bool show(int64_t step, int (trainer::*work)(int64_t), bool saved);
  void save_evaluation(int64_t step);
  int write_sample(int64_t step);
  void write_own_sample(int64_t step);
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
  std::unique_ptr<text_writer> text_; // where samples are asked for
  std::optional<sample_folder> samples_;
  std::optional<rank_reports> sample_reports_;
  int64_t sampled_step_ = -1;
  std::string sample_; // as long as one is
  std::unique_ptr<progress> progress_;
  rate_schedule schedule_;
  double start_seconds_ = 0, mark_seconds_ = 0, most_seconds_ = INFINITY;
  double data_of_shown_ = 0, exchanging_of_shown_ = 0; // seconds, of evaluations and samples
  int64_t held_out_batches_ = 0, steps_taken_ = 0;
  bool is_sync_said_ = false;
  std::string watched_;                              // the metric of best_
  double loss_ = NAN;                                // of the last step
  int64_t evaluated_step_ = -1;                      // of the results that held_out_ has
  best_evaluation best_;                             // of the run
  double saved_seconds_ = 0, evaluated_seconds_ = 0; // when, or the run began
  double looked_seconds_ = 0;                        // at the folder
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
  // And that is said.
  bool labels_lack_ = false, is_held_out_loss_said_ = false, was_data_looked_at_ = false;
  bool is_taken_ = false;             // the folder, by another run
  bool evaluates_other_data_ = false; // than before; the first rank knows
  std::set<std::string> said_of_bookkeeping_;
  int exit_code_ = exit_success;
};

} // namespace trainc
