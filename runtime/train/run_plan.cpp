// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_plan.h"

#include "runtime/checkpoint/weight_files.h"
#include "runtime/files/run_files.h"
#include "runtime/options/restored_options.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/run/same_data.h"
#include "runtime/run/sample_folder.h"

#include <cinttypes>
#include <cmath>
#include <unistd.h>

namespace trainc {
namespace {

constexpr int most_starts_at_once = 1000; // of runs that take the next number

std::vector<std::string> of_first_rank(communicator &ranks, const std::vector<std::string> &own) {
  std::vector<std::string> all(std::stoul(ranks.broadcast(std::to_string(own.size()))));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = ranks.broadcast(i < own.size() ? own[i] : "");
  return all;
}

// Finds what a plan says, part by part.
class planner {
public:
  planner(run &run, run_sources &sources) : run_(run), options_(run.options), sources_(sources) {
    plan_.is_dry = options_.dry_run;
  }
  run_plan operator()();

private:
  void find_extent();
  std::string weights_to_begin_with() const;
  void take_folder(bool takes_over);
  void choose_origin(const std::string &path);
  void hold_to(const run_origin &before);
  void warn_of_other_parameters(const run_origin &before) const;
  void refuse_older(const std::string &path, const std::string &where) const;
  void compare_computation() const;
  void find_layout();
  void open_data();
  void find_position();
  void find_loss_scale();
  void settle_last_step();

  run &run_;
  const trainer_options &options_;
  run_sources &sources_;
  run_plan plan_;
};

run_plan planner::operator()() {
  run_.ranks.together([&] { run_.table.check(options_); });
  run_.check_layout();
  find_extent();
  run_.ranks.together([&] { find_layout(); });
  open_data();
  run_.ranks.together([&] {
    find_position();
    find_loss_scale();
  });
  settle_last_step();
  return std::move(plan_);
}

void planner::open_data() {
  sources_.data.emplace(run_.open_data(!options_.no_shuffle, plan_.order.seed,
                                       /*partial_batches=*/true));
  bool has_buffers = false;
  for (int64_t i = 0; i < run_.prog.parameter_count; ++i)
    has_buffers |= run_.prog.parameters[i].role == parameter_role::buffer;
  if (has_buffers && options_.rest == leftovers::pad)
    run_.warn("option --leftovers pad: statistics of a batch (BatchNormalization) count the rows "
              "that fill up the last one, which repeat its last sample");
  if (std::optional<loader> other = run_.open_validation_data())
    sources_.validation.emplace(std::move(*other));
}

// What is not read any more, since the run has a checkpoint, may be gone.
std::string planner::weights_to_begin_with() const {
  std::string path = whole_path(options_.initialise);
  try {
    return path_of_weights(path);
  } catch (const failure &) {
    if (!plan_.choice.goes_on() || !has_saved(plan_.choice.folder))
      throw;
    return path;
  }
}

// Finds the run's folder and the checkpoint to go on from, before anything is allocated.
void planner::find_extent() {
  plan_.order.seed = options_.seed;
  std::string path;
  run_.ranks.together([&] {
    plan_.choice = choose_run(run_.prog, options_);
    if (!run_.is_first())
      return;
    bool goes_on = plan_.choice.goes_on();
    take_folder(goes_on || options_.overwrite);
    if (options_.sample_every > 0)
      check_folder_of_run(sample_folder(plan_.choice.folder).path());
    if (!options_.no_tensorboard)
      check_folder_of_run(events_of(plan_.choice.folder));
    if (!goes_on)
      check_given_up(plan_.choice.folder, input_files_of(run_.prog, options_));
    plan_.origin.parameters = weights_to_begin_with();
    plan_.origin.renames = options_.rename;
    if (plan_.choice.checkpoint.empty())
      return hold_to({});
    std::string where = checkpoints_of(plan_.choice.folder);
    if (goes_on && !plan_.is_dry)
      recover_checkpoints(where);
    auto warn = [&](const std::string &text) { run_.warn(text); };
    path = find_checkpoint(plan_.choice.checkpoint, where, run_.prog, warn).path;
    if (path.empty() && options_.resume == "latest" && holds_run(plan_.choice.folder))
      throw failure(exit_checkpoint, plan_.choice.folder +
                                         ": its log has steps, but no checkpoint is there\n  try: "
                                         "to bring its checkpoints back, --resume auto to begin "
                                         "anew if it never had one, or --overwrite");
    if (path.empty() && has_saved(plan_.choice.folder))
      throw failure(exit_checkpoint,
                    where + ": the run has had a checkpoint, and none is there\n  try: to bring "
                            "its checkpoints back (a disk that is not mounted?), or --overwrite "
                            "without --resume");
    if (!path.empty() && goes_on && plan_.choice.checkpoint != "latest") // the newest that is whole
      refuse_older(path, where);
    choose_origin(path);
  });
  path = run_.ranks.broadcast(path);
  plan_.origin.checkpoint = run_.ranks.broadcast(plan_.origin.checkpoint);
  plan_.origin.parameters = run_.ranks.broadcast(plan_.origin.parameters);
  plan_.origin.renames = of_first_rank(run_.ranks, plan_.origin.renames);
  if (path.empty() && plan_.origin.checkpoint.empty())
    return;
  plan_.has_own_checkpoint = plan_.choice.goes_on() && !path.empty();
  if (path.empty())
    path = plan_.origin.checkpoint;
  run_.ranks.together([&] {
    plan_.resumed = read_manifest(path);
    compare_computation();
  });
  plan_.first = plan_.resumed.step;
  plan_.order.seed = plan_.resumed.order.seed;
  if (plan_.has_own_checkpoint && plan_.resumed.watched == options_.keep.watched() &&
      !options_.new_data)
    plan_.best = plan_.resumed.best;
}

// By default under the next number that nobody else takes at this moment.
void planner::take_folder(bool takes_over) {
  const bool is_numbered = plan_.choice.folder.empty();
  for (int tries = 1;; ++tries)
    try {
      if (is_numbered)
        plan_.choice.folder = whole_path(next_run(run_.prog));
      if (plan_.is_dry)
        check_run_folder(plan_.choice.folder, takes_over);
      else
        sources_.folder.emplace(plan_.choice.folder, takes_over);
      if (sources_.folder && !sources_.folder->is_lockable())
        run_.warn(plan_.choice.folder +
                  ": the file system has no locks: a second run there would not be "
                  "noticed\n  try: one run for each --run DIR");
      return;
    } catch (const folder_in_use &) {
      if (!is_numbered || tries == most_starts_at_once)
        throw;
    }
}

// What the run begins with, or, if it has a checkpoint at `path`, began with.
void planner::choose_origin(const std::string &path) {
  if (!plan_.choice.goes_on()) {
    plan_.origin.checkpoint = whole_path(path);
    return hold_to({});
  }
  const std::string configuration = plan_.choice.configuration();
  const run_origin before =
      configuration.empty() ? run_origin() : read_configuration(configuration).origin;
  if (!path.empty())
    warn_of_other_parameters(before);
  if (!path.empty() || plan_.origin.parameters.empty())
    plan_.origin = before;
  if (!path.empty())
    return;
  hold_to(before);
  const std::string &from =
      plan_.origin.checkpoint.empty() ? plan_.origin.parameters : plan_.origin.checkpoint;
  run_.warn(checkpoints_of(plan_.choice.folder) +
            ": holds no checkpoint yet; training begins with " +
            (from.empty() ? "the initial parameters" : from));
}

// Notes what the run begins with. One that began before begins with the same again.
void planner::hold_to(const run_origin &before) {
  const std::string file = plan_.origin.file();
  if (file.empty())
    return;
  plan_.origin.content = content_of_weights(file); // of a checkpoint's manifest likewise
  if (before.content && before.content != plan_.origin.content)
    throw failure(exit_checkpoint,
                  format_text("%s: is not what the run began with: %s of %" PRId64
                              " bytes then, other contents of %" PRId64
                              " bytes now\n  try: the file as it was; or, as the run has no "
                              "checkpoint yet, --overwrite without --resume to begin with this one",
                              file.c_str(), before.file().c_str(), before.content->bytes,
                              plan_.origin.content->bytes));
  if (before.content && before.renames != plan_.origin.renames)
    throw failure(exit_checkpoint,
                  file + ": is not what the run began with: its --rename was " +
                      (before.renames.empty() ? "not given" : joined(before.renames)) +
                      "\n  try: the same; or, as the run has no checkpoint yet, --overwrite "
                      "without --resume to begin with this one");
}

// Given again to a run that has a checkpoint, --initialise is not read any more.
void planner::warn_of_other_parameters(const run_origin &before) const {
  const std::string &now = plan_.origin.parameters;
  if (now.empty())
    return;
  const bool is_there = access(now.c_str(), R_OK) == 0;
  const bool is_other = before.content && is_there ? content_of_weights(now) != before.content
                                                   : now != before.parameters;
  if (is_other || before.renames != plan_.origin.renames)
    run_.warn(now + ": is not what the run began with, and is not read: the run goes on from its "
                    "checkpoint\n  try: another --run DIR to begin with it");
}

// Going on from an older checkpoint would cut off the work after it.
void planner::refuse_older(const std::string &path, const std::string &where) const {
  int64_t step = read_manifest(path).step;
  for (const checkpoint_info &other : list_checkpoints(where, [](const std::string &) {}))
    if (other.step > step)
      throw failure(exit_usage,
                    format_text("%s: the run has gone on to step %" PRId64
                                "\n  try: --resume latest, or --run DIR to branch off in another "
                                "folder",
                                path.c_str(), other.step));
}

// A run stays what it computes: its log and its best checkpoint would compare what cannot be.
void planner::compare_computation() const {
  const std::vector<std::string> changes =
      changes_of_computation(plan_.resumed.computed, run_.prog);
  if (changes.empty())
    return;
  std::string both = changes.front();
  if (changes.size() > 1)
    both += "; " + changes.back();
  if (plan_.has_own_checkpoint)
    throw failure(exit_checkpoint,
                  plan_.resumed.path + ": is of a run that computes something else: now " + both +
                      "\n  try: the trainer that wrote it, or --run NEW --resume " +
                      plan_.resumed.path + " to branch off with this one");
  if (plan_.choice.configuration().empty() && run_.is_first()) // which else has said it
    for (const std::string &change : changes)
      fprintf(stderr, "changed from %s: %s\n", plan_.resumed.path.c_str(), change.c_str());
}

// The batches of a step stay what they were, whatever the number of ranks is now.
void planner::find_layout() {
  const pipeline *stages = run_.prog.stages;
  plan_.layout = {stage_layout(run_.prog, run_.ranks.rank(), run_.ranks.size()).replicas,
                  stages ? stages->micro_batches : options_.micro_batches};
  std::string before = plan_.choice.configuration();
  auto known = before.empty() || options_.given.count("micro-batches")
                   ? std::nullopt
                   : read_configuration(before).layout();
  if (stages && known && known->batches() != plan_.layout.batches())
    throw failure(exit_usage,
                  format_text("a step of this run takes %" PRId64 " batches, and %" PRId64
                              " of this program (%" PRId64 " replicas x %" PRId64
                              " micro-batches)\n  try: another number of ranks, or --micro-batches "
                              "%" PRId64 " for steps of another size",
                              known->batches(), plan_.layout.batches(), plan_.layout.ranks,
                              plan_.layout.micro_batches, plan_.layout.micro_batches));
  if (stages || !known || known->ranks == plan_.layout.ranks)
    return;
  if (known->batches() % plan_.layout.ranks != 0)
    throw failure(exit_usage,
                  format_text("a step of this run takes %" PRId64 " batches (%" PRId64
                              " ranks x %" PRId64 " micro-batches), which %" PRId64
                              " ranks cannot share evenly\n  try: another number of ranks, or "
                              "--micro-batches N for steps of another size",
                              known->batches(), known->ranks, known->micro_batches,
                              plan_.layout.ranks));
  plan_.layout.micro_batches = known->batches() / plan_.layout.ranks;
  if (run_.prog.updates_in_backward && plan_.layout.micro_batches > 1)
    throw failure(
        exit_usage,
        format_text("a step of this run takes %" PRId64 " batches, and the program, which "
                    "updates parameters in the backward pass, one\n  try: trainc without "
                    "--update-in-backward, or --micro-batches 1 for steps of another size",
                    known->batches()));
  run_.warn(format_text("%" PRId64 " ranks x %" PRId64 " micro-batches, were %" PRId64 " x %" PRId64
                        ": the same batches a step%s",
                        plan_.layout.ranks, plan_.layout.micro_batches, known->ranks,
                        known->micro_batches,
                        run_.prog.rank_exchange_bytes > 0
                            ? ", but other ones together in batch norms: the run goes on as another"
                            : ""));
}

// The position in the data, which is counted in samples.
void planner::find_position() {
  const std::string before = plan_.choice.configuration();
  const run_configuration kept = before.empty() ? run_configuration() : read_configuration(before);
  sample_order &order = plan_.order;
  order.samples_per_batch = sources_.data->samples_per_batch();
  order.number = before.empty() ? plan_.resumed.order.number : kept.data_order;
  order.number += options_.new_data ? 1 : 0;
  order.choice = choice_of(options_);
  if (plan_.resumed.path.empty())
    return;
  bool says_seed = options_.given.count("seed") || !kept.option("seed").empty();
  if (says_seed && options_.seed != order.seed)
    throw failure(exit_usage, format_text("option --seed: the checkpoint's run has seed %" PRIu64
                                          "; another would change the order of the data",
                                          order.seed));
  if (options_.new_data)
    return;
  if (!before.empty())
    check_same_choice(choice_of(kept_options(run_.prog, before, run_.table)), *order.choice);
  if (order.number != plan_.resumed.order.number)
    return run_.warn("the checkpoint is older than --new-data: the order of the data begins anew");
  if (plan_.resumed.order.choice) // a configuration may have been edited
    check_same_choice(*plan_.resumed.order.choice, *order.choice);
  int64_t size = plan_.resumed.order.samples_per_batch > 0 ? plan_.resumed.order.samples_per_batch
                                                           : order.samples_per_batch;
  plan_.batches_taken = sources_.data->batch_after(plan_.resumed.batches_taken, size);
  const std::optional<batch_layout> layout = kept.layout();
  const int64_t now = plan_.layout.batches() * order.samples_per_batch;
  if (layout && size != order.samples_per_batch && layout->batches() * size != now)
    run_.warn(format_text("a step takes %" PRId64 " samples from here on, and took %" PRId64
                          ": this trainer has batches of %" PRId64 ", the run's had %" PRId64
                          "\n  try: another number of ranks, or --micro-batches",
                          now, layout->batches() * size, order.samples_per_batch, size));
}

// The checkpoint's, unless the command line changes the run's option: one that is repeated at each
// start would take back what the run has found.
void planner::find_loss_scale() {
  const std::string before = plan_.choice.configuration();
  const bool changes = before.empty() ? options_.given.count("loss-scale") > 0
                                      : kept_options(run_.prog, before, run_.table).loss_scale !=
                                            options_.loss_scale;
  const bool goes_on = plan_.resumed.scale.factor > 0 && !changes;
  plan_.scale = goes_on ? plan_.resumed.scale : loss_scale{options_.loss_scale};
}

void planner::settle_last_step() {
  int64_t per_step = plan_.layout.batches();
  run_.ranks.together([&] {
    const loader &data = *sources_.data;
    const int64_t per_epoch = data.batches(data_part::training);
    const bool pads = options_.rest == leftovers::pad;
    if (per_epoch < per_step)
      throw failure(exit_data, "the training data has " +
                                   counted(data.samples(data_part::training), "sample") + " in " +
                                   counted(per_epoch, "batch") +
                                   format_text(" of %" PRId64 ", but one step takes %" PRId64
                                               " (%d ranks x %" PRId64 " micro-batches)",
                                               data.samples_per_batch(), per_step,
                                               run_.ranks.size(), plan_.layout.micro_batches) +
                                   (pads ? "; --leftovers pad fills up a batch, not a step" : "") +
                                   "\n  try: more data, or fewer ranks or micro-batches");
    plan_.last = last_step_of(options_, plan_, data);
    if (evaluates(options_))
      plan_.held_out_batches = sources_.validation ? sources_.validation->batches(data_part::all)
                                                   : sources_.data->batches(data_part::held_out);
    if (int64_t most = options_.validation_batches; most > 0)
      plan_.held_out_batches = std::min(plan_.held_out_batches, most);
  });
}

} // namespace

bool evaluates(const trainer_options &options) { return options.evaluate_every.count > 0; }

int64_t last_step_of(const trainer_options &options, const run_plan &plan, const loader &data) {
  if (options.steps)
    return *options.steps;
  const double batches = options.epochs.value_or(0) * data.batches_per_epoch(),
               left = batches - static_cast<double>(plan.batches_taken),
               steps = std::ceil(left / static_cast<double>(plan.layout.batches()));
  return plan.first + static_cast<int64_t>(std::max(0.0, steps));
}

run_plan plan_run(run &run, run_sources &sources) { return planner(run, sources)(); }

// Throws where the run would be trained on other data. Returns whether it is evaluated on others.
static bool has_other_validation_data(const run &run, const run_plan &plan,
                                      const run_sources &sources) {
  const trainer_options &options = run.options;
  const std::string before = plan.choice.configuration();
  if (!run.is_first() || plan.resumed.path.empty() || before.empty())
    return false;
  if (!options.new_data)
    check_same_data(before, data_use::training, sources.data->identities());
  if (!sources.validation)
    return false;
  try {
    check_same_data(before, data_use::validation, sources.validation->identities());
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

std::vector<std::pair<std::string, std::string>>
describe_data(const trainer_options &options, const run_plan &plan, const run_sources &sources) {
  const loader &data = *sources.data;
  const double batches = data.batches_per_epoch();
  std::string text = counted(data.samples(data_part::training), "sample") +
                     format_text(", %.8g %s an epoch", batches, batches == 1 ? "batch" : "batches");
  if (const int64_t rest = data.left_out(data_part::training); rest > 0)
    text += "; " + left_out_text(rest, /*of_each_epoch=*/true);
  std::vector<std::pair<std::string, std::string>> rows = {{"training data", text}};
  if (plan.order.seed != options.seed)
    rows.emplace_back("seed", std::to_string(plan.order.seed) + ", of the checkpoint");
  if (!evaluates(options))
    return rows;
  const loader &other = sources.held_out();
  const data_part part = sources.held_out_part();
  text = counted(other.samples(part), "sample") + " in " + counted(plan.held_out_batches, "batch");
  if (int64_t left = other.left_out(part); left > 0)
    text += "; " + left_out_text(left, /*of_each_epoch=*/false);
  rows.emplace_back("held-out data", text);
  return rows;
}
} // namespace trainc
