// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/same_run.h"

#include "runtime/checkpoint/weight_files.h"
#include "runtime/data/data_manifest.h"
#include "runtime/files/run_files.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/run/same_data.h"

#include <cinttypes>
#include <cmath>
#include <unistd.h>

namespace trainc {

// A run stays what it computes: its log and its best checkpoint would compare what cannot be.
void compare_computation(const run &run, const run_plan &plan) {
  const std::vector<std::string> changes = changes_of_computation(plan.resumed.computed, run.prog);
  if (changes.empty())
    return;
  std::string both = changes.front();
  if (changes.size() > 1)
    both += "; " + changes.back();
  if (plan.has_own_checkpoint)
    throw failure(exit_checkpoint,
                  plan.resumed.path + ": is of a run that computes something else: now " + both +
                      "\n  try: the trainer that wrote it, or --run NEW --resume " +
                      plan.resumed.path + " to branch off with this one");
  if (!plan.before && run.is_first()) // which else has said it
    for (const std::string &change : changes)
      fprintf(stderr, "changed from %s: %s\n", plan.resumed.path.c_str(), change.c_str());
}

void hold_to(run_plan &plan, const run_origin &before) {
  const std::string file = plan.origin.file();
  if (file.empty())
    return;
  plan.origin.content = content_of_weights(file); // of a checkpoint's manifest likewise
  if (before.content && before.content != plan.origin.content)
    throw failure(exit_checkpoint,
                  format_text("%s: is not what the run began with: %s of %" PRId64
                              " bytes then, other contents of %" PRId64
                              " bytes now\n  try: the file as it was; or, as the run has no "
                              "checkpoint yet, --overwrite without --resume to begin with this one",
                              file.c_str(), before.file().c_str(), before.content->bytes,
                              plan.origin.content->bytes));
  if (before.content && before.renames != plan.origin.renames)
    throw failure(exit_checkpoint,
                  file + ": is not what the run began with: its --rename was " +
                      (before.renames.empty() ? "not given" : joined(before.renames)) +
                      "\n  try: the same; or, as the run has no checkpoint yet, --overwrite "
                      "without --resume to begin with this one");
}

// Given again to a run that has a checkpoint, --initialise is not read any more.
void warn_of_other_parameters(const run &run, const run_plan &plan, const run_origin &before) {
  const std::string &now = plan.origin.parameters;
  if (now.empty())
    return;
  const bool is_there = access(now.c_str(), R_OK) == 0;
  const bool is_other = before.content && is_there ? content_of_weights(now) != before.content
                                                   : now != before.parameters;
  if (is_other || before.renames != plan.origin.renames)
    run.warn(now + ": is not what the run began with, and is not read: the run goes on from its "
                   "checkpoint\n  try: another --run DIR to begin with it");
}

// The batches of a step stay what they were, whatever the number of ranks is now.
void find_layout(const run &run, run_plan &plan) {
  const pipeline *stages = run.prog.stages;
  plan.layout = {stage_layout(run.prog, run.ranks.rank(), run.ranks.size()).replicas,
                 stages ? stages->micro_batches : run.options.micro_batches};
  const auto known = plan.before && !run.options.given.count("micro-batches")
                         ? plan.before->configuration.layout()
                         : std::nullopt;
  if (stages && known && known->batches() != plan.layout.batches())
    throw failure(exit_usage,
                  format_text("a step of this run takes %" PRId64 " batches, and %" PRId64
                              " of this program (%" PRId64 " replicas x %" PRId64
                              " micro-batches)\n  try: another number of ranks, or --micro-batches "
                              "%" PRId64 " for steps of another size",
                              known->batches(), plan.layout.batches(), plan.layout.ranks,
                              plan.layout.micro_batches, plan.layout.micro_batches));
  if (stages || !known || known->ranks == plan.layout.ranks)
    return;
  if (known->batches() % plan.layout.ranks != 0)
    throw failure(exit_usage,
                  format_text("a step of this run takes %" PRId64 " batches (%" PRId64
                              " ranks x %" PRId64 " micro-batches), which %" PRId64
                              " ranks cannot share evenly\n  try: another number of ranks, or "
                              "--micro-batches N for steps of another size",
                              known->batches(), known->ranks, known->micro_batches,
                              plan.layout.ranks));
  plan.layout.micro_batches = known->batches() / plan.layout.ranks;
  if (run.prog.updates_in_backward && plan.layout.micro_batches > 1)
    throw failure(
        exit_usage,
        format_text("a step of this run takes %" PRId64 " batches, and the program, which "
                    "updates parameters in the backward pass, one\n  try: trainc without "
                    "--update-in-backward, or --micro-batches 1 for steps of another size",
                    known->batches()));
  run.warn(format_text("%" PRId64 " ranks x %" PRId64 " micro-batches, were %" PRId64 " x %" PRId64
                       ": the same batches a step%s",
                       plan.layout.ranks, plan.layout.micro_batches, known->ranks,
                       known->micro_batches,
                       run.prog.rank_exchange_bytes > 0
                           ? ", but other ones together in batch norms: the run goes on as another"
                           : ""));
}

// The position in the data, which is counted in samples.
void find_position(const run &run, run_plan &plan, const loader &data) {
  const run_configuration kept = plan.before ? plan.before->configuration : run_configuration();
  sample_order &order = plan.order;
  order.samples_per_batch = data.samples_per_batch();
  order.number = plan.before ? kept.data_order : plan.resumed.order.number;
  order.number += run.options.new_data ? 1 : 0;
  order.choice = choice_of(run.options);
  if (plan.resumed.path.empty())
    return;
  bool says_seed = run.options.given.count("seed") || !kept.option("seed").empty();
  if (says_seed && run.options.seed != order.seed)
    throw failure(exit_usage, format_text("option --seed: the checkpoint's run has seed %" PRIu64
                                          "; another would change the order of the data",
                                          order.seed));
  if (run.options.new_data)
    return;
  if (plan.before)
    check_same_choice(choice_of(plan.before->options), *order.choice);
  if (order.number != plan.resumed.order.number)
    return run.warn("the checkpoint is older than --new-data: the order of the data begins anew");
  if (plan.resumed.order.choice) // a configuration may have been edited
    check_same_choice(*plan.resumed.order.choice, *order.choice);
  int64_t size = plan.resumed.order.samples_per_batch > 0 ? plan.resumed.order.samples_per_batch
                                                          : order.samples_per_batch;
  plan.batches_taken = data.batch_after(plan.resumed.batches_taken, size);
  const std::optional<batch_layout> layout = kept.layout();
  const int64_t now = plan.layout.batches() * order.samples_per_batch;
  if (layout && size != order.samples_per_batch && layout->batches() * size != now)
    run.warn(format_text("a step takes %" PRId64 " samples from here on, and took %" PRId64
                         ": this trainer has batches of %" PRId64 ", the run's had %" PRId64
                         "\n  try: another number of ranks, or --micro-batches",
                         now, layout->batches() * size, order.samples_per_batch, size));
}

// The checkpoint's, unless the command line changes the run's option: one that is repeated at each
// start would take back what the run has found.
void find_loss_scale(const run &run, run_plan &plan) {
  const bool changes = plan.before ? plan.before->options.loss_scale != run.options.loss_scale
                                   : run.options.given.count("loss-scale") > 0;
  const bool goes_on = plan.resumed.scale.factor > 0 && !changes;
  plan.scale = goes_on ? plan.resumed.scale : loss_scale{run.options.loss_scale};
}

static void warn_of_rewritten(const run &run, const std::vector<std::string> &paths) {
  for (const std::string &path : paths)
    if (!run.options.check_data || !read_data_manifest(path))
      run.warn(path + ": was written again since the run was started last; its size and sampled "
                      "contents are the same\n  try: --check-data, which compares all of a file "
                      "that trainc-data made");
}

// Throws where the run would be trained on other data. Returns whether it is evaluated on others.
static bool has_other_validation_data(const run &run, const run_plan &plan,
                                      const run_sources &sources) {
  const trainer_options &options = run.options;
  if (!run.is_first() || plan.resumed.path.empty() || !plan.before)
    return false;
  const run_configuration &before = plan.before->configuration;
  if (!options.new_data)
    warn_of_rewritten(run, check_same_data(before, data_use::training, sources.data->identities()));
  if (!sources.validation)
    return false;
  try {
    warn_of_rewritten(
        run, check_same_data(before, data_use::validation, sources.validation->identities()));
    return false;
  } catch (const failure &) {
    if (!options.given.count("validation-data") && !options.given.count("validation-tokens"))
      throw;
  }
  run.warn(std::string("the validation data changed: held-out losses of the run "
                       "compare different data") +
           (is_of_evaluation(options.keep.best_by)
                ? ", and so does --keep-best\n  try: another --run DIR that branches off, with "
                  "--resume, to keep the best on these"
                : ""));
  return true;
}

void check_run_data(run &run, run_plan &plan, const run_sources &sources) {
  bool evaluates_others = false; // which the first rank knows
  run.ranks.together([&] { evaluates_others = has_other_validation_data(run, plan, sources); });
  if (!run.ranks.broadcast(evaluates_others ? "yes" : "").empty())
    plan.best = {}; // on every rank, which all end by it
}

// A schedule as long as the run has another rate at the same step where the run gets longer.
void warn_of_rate(const run &run, const run_plan &plan, const rate_schedule &schedule,
                  const loader &data) {
  const trainer_options &options = run.options;
  constexpr double least = 1e-3; // of the rate
  if (!plan.has_own_checkpoint || !plan.before || is_schedule_given(options) ||
      !schedule_reads(options.schedule, "schedule-steps"))
    return;
  const trainer_options &kept = plan.before->options;
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

// Of the log, those before the run went on included.
static int64_t steps_between_lines(const run &run, const run_plan &plan) {
  return std::max(plan.before ? plan.before->options.log_every : 1, run.options.log_every);
}

// Says that it was damaged, or has no lines of the last steps.
void warn_of_log(const run &run, const run_plan &plan, const step_log &log) {
  const std::string path = log_of(plan.choice.folder);
  if (!log.damaged().empty())
    run.warn(path + ": is damaged; the old file is kept as " + log.damaged() +
             ", and the log goes on with the lines that can be read");
  else if (plan.has_own_checkpoint && !run.options.dry_run && run.is_first() &&
           log.last_step() + steps_between_lines(run, plan) <= plan.first)
    run.warn(path + format_text(": has no line of the steps after %" PRId64
                                ", and the run is at %" PRId64
                                ": they were removed, or could not be written",
                                log.last_step(), plan.first));
}

} // namespace trainc
