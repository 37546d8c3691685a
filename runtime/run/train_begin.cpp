// SPDX-License-Identifier: Apache-2.0
//
// What a training run decides before its first step: where it begins and ends, on which data, and
// whose folder it takes.
#include "runtime/checkpoint/weight_files.h"
#include "runtime/options/restored_options.h"
#include "runtime/options/train_options.h"
#include "runtime/process/host_memory.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/run/initial_values.h"
#include "runtime/run/same_data.h"
#include "runtime/run/trainer.h"

#include <cinttypes>
#include <cmath>
#include <unistd.h>

namespace trainc {

constexpr int most_starts_at_once = 1000; // of runs that take the next number

// Finds the run's folder and the checkpoint to go on from, before anything is allocated.
void trainer::find_extent() {
  extent_.order.seed = options_.seed;
  std::string path;
  run_.ranks.together([&] {
    choice_ = choose_run(run_.prog, options_);
    if (!run_.is_first())
      return;
    bool goes_on = choice_.goes_on();
    take_folder(goes_on || options_.overwrite);
    if (options_.sample_every > 0)
      check_sample_folder(choice_.folder);
    if (!goes_on)
      check_given_up(choice_.folder, input_files_of(run_.prog, options_));
    origin_.parameters = whole_path(options_.initialise);
    if (choice_.checkpoint.empty())
      return hold_to({});
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
  origin_.checkpoint = run_.ranks.broadcast(origin_.checkpoint);
  origin_.parameters = run_.ranks.broadcast(origin_.parameters);
  if (path.empty() && origin_.checkpoint.empty())
    return;
  has_own_checkpoint_ = choice_.goes_on() && !path.empty();
  if (path.empty())
    path = origin_.checkpoint;
  run_.ranks.together([&] {
    resumed_ = read_manifest(path);
    compare_computation();
  });
  extent_.first = resumed_.step;
  saved_step_ = has_own_checkpoint_ ? resumed_.step : -1;
  skipped_steps_ = resumed_.skipped_steps;
  extent_.order.seed = resumed_.order.seed;
  losses_ = resumed_.losses;
  loss_ = resumed_.loss;
  if (has_own_checkpoint_ && resumed_.watched == watched_ && !options_.new_data)
    best_ = resumed_.best;
}

// By default under the next number that nobody else takes at this moment.
void trainer::take_folder(bool takes_over) {
  const bool is_numbered = choice_.folder.empty();
  for (int tries = 1;; ++tries)
    try {
      if (is_numbered)
        choice_.folder = whole_path(next_run(run_.prog));
      if (dry_)
        check_run_folder(choice_.folder, takes_over);
      else
        folder_.emplace(choice_.folder, takes_over);
      if (folder_ && !folder_->is_lockable())
        run_.warn(choice_.folder +
                  ": the file system has no locks: a second run there would not be "
                  "noticed\n  try: one run for each --run DIR");
      return;
    } catch (const folder_in_use &) {
      if (!is_numbered || tries == most_starts_at_once)
        throw;
    }
}

// What the run begins with, or, if it has a checkpoint at `path`, began with.
void trainer::choose_origin(const std::string &path) {
  if (!choice_.goes_on()) {
    origin_.checkpoint = whole_path(path);
    return hold_to({});
  }
  const std::string configuration = choice_.configuration();
  const run_origin before =
      configuration.empty() ? run_origin() : read_configuration(configuration).origin;
  if (!path.empty())
    warn_of_other_parameters(before);
  if (!path.empty() || origin_.parameters.empty())
    origin_ = before;
  if (!path.empty())
    return;
  hold_to(before);
  const std::string &from = origin_.checkpoint.empty() ? origin_.parameters : origin_.checkpoint;
  run_.warn(checkpoints_of(choice_.folder) + ": holds no checkpoint yet; training begins with " +
            (from.empty() ? "the initial parameters" : from));
}

// Notes what the run begins with. One that began before begins with the same again.
void trainer::hold_to(const run_origin &before) {
  const std::string file = origin_.file();
  if (file.empty())
    return;
  origin_.content = content_of_weights(file); // of a checkpoint's manifest likewise
  if (before.content && before.content != origin_.content)
    throw failure(exit_checkpoint,
                  format_text("%s: is not what the run began with: %s of %" PRId64
                              " bytes then, other contents of %" PRId64
                              " bytes now\n  try: the file as it was; or, as the run has no "
                              "checkpoint yet, --overwrite without --resume to begin with this one",
                              file.c_str(), before.file().c_str(), before.content->bytes,
                              origin_.content->bytes));
}

// Given again to a run that has a checkpoint, --initialise is not read any more.
void trainer::warn_of_other_parameters(const run_origin &before) const {
  const std::string &now = origin_.parameters;
  if (now.empty())
    return;
  const bool is_there = access(now.c_str(), R_OK) == 0;
  const bool is_other = before.content && is_there ? content_of_weights(now) != before.content
                                                   : now != before.parameters;
  if (is_other)
    run_.warn(now + ": is not what the run began with, and is not read: the run goes on from its "
                    "checkpoint\n  try: another --run DIR to begin with it");
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

// A run stays what it computes: its log and its best checkpoint would compare what cannot be.
void trainer::compare_computation() const {
  const std::vector<std::string> changes = changes_of_computation(resumed_.computed, run_.prog);
  if (changes.empty())
    return;
  std::string both = changes.front();
  if (changes.size() > 1)
    both += "; " + changes.back();
  if (has_own_checkpoint_)
    throw failure(exit_checkpoint,
                  resumed_.path + ": is of a run that computes something else: now " + both +
                      "\n  try: the trainer that wrote it, or --run NEW --resume " + resumed_.path +
                      " to branch off with this one");
  if (choice_.configuration().empty() && run_.is_first()) // which else has said it
    for (const std::string &change : changes)
      fprintf(stderr, "changed from %s: %s\n", resumed_.path.c_str(), change.c_str());
}

// The batches of a step stay what they were, whatever the number of ranks is now.
void trainer::find_layout() {
  const pipeline *stages = run_.prog.stages;
  layout_ = {stage_layout(run_.prog, run_.ranks.rank(), run_.ranks.size()).replicas,
             stages ? stages->micro_batches : options_.micro_batches};
  std::string before = choice_.configuration();
  auto known = before.empty() || options_.given.count("micro-batches")
                   ? std::nullopt
                   : read_configuration(before).layout();
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
                        ": the same batches a step%s",
                        layout_.ranks, layout_.micro_batches, known->ranks, known->micro_batches,
                        run_.prog.rank_exchange_bytes > 0
                            ? ", but other ones together in batch norms: the run goes on as another"
                            : ""));
}

std::vector<std::pair<std::string, std::string>> trainer::describe_data() const {
  int64_t samples = data_->samples(data_part::training),
          rest = data_->left_out(data_part::training);
  const double batches = data_->batches_per_epoch();
  std::string text = counted(samples, "sample") +
                     format_text(", %.8g %s an epoch", batches, batches == 1 ? "batch" : "batches");
  if (rest > 0)
    text += "; " + left_out_text(rest, /*of_each_epoch=*/true);
  std::vector<std::pair<std::string, std::string>> rows = {{"training data", text}};
  if (extent_.order.seed != options_.seed)
    rows.emplace_back("seed", std::to_string(extent_.order.seed) + ", of the checkpoint");
  if (!evaluates())
    return rows;
  const loader &other = validation_ ? *validation_ : *data_;
  data_part part = validation_ ? data_part::all : data_part::held_out;
  text = counted(other.samples(part), "sample") + " in " + counted(held_out_batches_, "batch");
  if (int64_t left = other.left_out(part); left > 0)
    text += "; " + left_out_text(left, /*of_each_epoch=*/false);
  rows.emplace_back("held-out data", text);
  return rows;
}

// The position in the data, which is counted in samples.
void trainer::find_position() {
  const std::string before = choice_.configuration();
  const run_configuration kept = before.empty() ? run_configuration() : read_configuration(before);
  sample_order &order = extent_.order;
  order.samples_per_batch = data_->samples_per_batch();
  order.number = before.empty() ? resumed_.order.number : kept.data_order;
  order.number += options_.new_data ? 1 : 0;
  order.choice = choice_of(options_);
  if (resumed_.path.empty())
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
  if (order.number != resumed_.order.number)
    return run_.warn("the checkpoint was written before --new-data: their order begins anew");
  if (resumed_.order.choice) // a configuration may have been edited
    check_same_choice(*resumed_.order.choice, *order.choice);
  int64_t size = resumed_.order.samples_per_batch > 0 ? resumed_.order.samples_per_batch
                                                      : order.samples_per_batch;
  extent_.batches_taken = data_->batch_after(resumed_.batches_taken, size);
  const std::optional<batch_layout> layout = kept.layout();
  const int64_t now = layout_.batches() * order.samples_per_batch;
  if (layout && size != order.samples_per_batch && layout->batches() * size != now)
    run_.warn(format_text("a step takes %" PRId64 " samples from here on, and took %" PRId64
                          ": this trainer has batches of %" PRId64 ", the run's had %" PRId64
                          "\n  try: another number of ranks, or --micro-batches",
                          now, layout->batches() * size, order.samples_per_batch, size));
}

// By --steps, or --epochs from here on.
int64_t trainer::last_step_of(const trainer_options &options) const {
  if (options.steps)
    return *options.steps;
  const double batches = options.epochs.value_or(0) * data_->batches_per_epoch(),
               left = batches - static_cast<double>(extent_.batches_taken),
               steps = std::ceil(left / static_cast<double>(layout_.batches()));
  return extent_.first + static_cast<int64_t>(std::max(0.0, steps));
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
    extent_.last = last_step_of(options_);
    if (evaluates())
      held_out_batches_ =
          validation_ ? validation_->batches(data_part::all) : data_->batches(data_part::held_out);
    if (int64_t most = options_.validation_batches; most > 0)
      held_out_batches_ = std::min(held_out_batches_, most);
  });
}

// Whether they are those of the run.
void trainer::check_data() {
  std::string before = choice_.configuration();
  if (!run_.is_first() || resumed_.path.empty() || before.empty())
    return;
  if (!options_.new_data)
    check_same_data(before, data_use::training, data_->identities());
  const bool is_said =
      options_.given.count("validation-data") || options_.given.count("validation-tokens");
  if (!validation_)
    return;
  try {
    check_same_data(before, data_use::validation, validation_->identities());
  } catch (const failure &) {
    if (!is_said)
      throw;
    evaluates_other_data_ = true;
    run_.warn(std::string("the validation data are others than before: held-out losses of the run "
                          "compare different data") +
              (is_of_evaluation(options_.keep.best_by)
                   ? ", and so does --keep-best\n  try: another --run DIR that branches off, with "
                     "--resume, to keep the best on these"
                   : ""));
  }
}

// What is to be done. Changes nothing of the run.
void trainer::decide() {
  run_.ranks.together([&] { check_train_options(run_.prog, options_); });
  run_.check_layout();
  watched_ = options_.keep.watched();
  find_extent();
  if (options_.sample_every > 0)
    run_.ranks.together([&] {
      text_ = std::make_unique<text_writer>(run_, extent_.order.seed, "option --sample-every");
      sample_reports_.emplace(run_, /*means=*/0);
    });
  sample_.reserve(options_.prompt.size() + static_cast<size_t>(options_.length) + 1);
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

bool trainer::is_at_last_step() const {
  return !resumed_.path.empty() && extent_.last <= extent_.first;
}

int trainer::nothing_to_do() const {
  if (run_.is_first())
    printf("nothing to do: the checkpoint is at step %" PRId64 " of %" PRId64 "%s; %s\n",
           extent_.first, extent_.last,
           extent_.last > extent_.first ? (", " + of_patience()).c_str() : "",
           choice_.goes_on() ? "the run and its options stay as they are" : "no new run is made");
  return exit_success;
}

void trainer::set_up() {
  bool saves = !options_.no_checkpoints && !dry_;
  background_ = saves && !options_.no_background;
  int64_t snapshot = background_ || (saves && run_.target.keeps_state_in_parts())
                         ? checkpoint_writer::snapshot_bytes(run_.prog, run_.ranks.size())
                         : 0;
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
      take_initial_values(run_, origin_.parameters);
  } else
    run_.ranks.together(
        [&] { load_tensors(resumed_, state_tensors(run_.prog, run_.places()), run_.target); });

  schedule_ = schedule_of(options_, extent_.last);
  if (options_.max_minutes)
    most_seconds_ = *options_.max_minutes * 60;
  if (saves)
    checkpoints_ = std::make_unique<checkpoint_writer>(
        run_.prog, run_.places(), run_.target, run_.ranks, real_file_operations(),
        checkpoints_of(run_.ranks.broadcast(choice_.folder)), options_.keep, extent_.order,
        background_);
  run_.ranks.together([&] {
    if (run_.is_first() && !options_.no_checkpoints)
      check_space();
    if (run_.is_first())
      warn_of_rate();
  });
}

// A schedule as long as the run has another rate at the same step where the run gets longer.
void trainer::warn_of_rate() const {
  constexpr double least = 1e-3; // of the rate
  const std::string before = choice_.configuration();
  if (!has_own_checkpoint_ || before.empty() || is_schedule_given(options_) ||
      !schedule_reads(options_.schedule, "schedule-steps"))
    return;
  const trainer_options kept = kept_options(run_.prog, before, run_.table);
  const rate_schedule was = schedule_of(kept, last_step_of(kept));
  const int64_t next = extent_.first + 1;
  const double rate = schedule_(next), rate_before = was(next);
  if (std::abs(rate - rate_before) > least * std::max(rate, rate_before))
    run_.warn(format_text("the learning rate of step %" PRId64 " is %g, and was %g: the schedule "
                          "is of %" PRId64 " steps, and was of %" PRId64
                          "\n  try: --schedule-steps %" PRId64 " to leave it as it was",
                          next, rate, rate_before, schedule_.total_steps, was.total_steps,
                          was.total_steps));
}

// What is too little for `count` checkpoints in the folder of a run; empty where they fit.
static std::string lacking_space(const std::string &folder, const program &program, int ranks,
                                 int64_t count) {
  const int64_t needed = count * checkpoint_writer::snapshot_bytes(program, /*ranks=*/1),
                files = count * (ranks + 2); // each its folder and the manifest
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
void trainer::check_space() const {
  const int ranks = run_.ranks.size();
  const int64_t largest = checkpoint_writer::snapshot_bytes(run_.prog, ranks);
  const std::optional<int64_t> limit = file_size_limit();
  std::string text = lacking_space(choice_.folder, run_.prog, ranks, 1),
              advice = "\n  try: free space, --run DIR elsewhere, or --no-checkpoints";
  if (text.empty() && limit && *limit < largest) {
    text = choice_.folder + ": a checkpoint needs a file of " + byte_text(largest) +
           ", and one may have " + byte_text(*limit) + " (ulimit -f)";
    advice = "\n  try: a larger ulimit -f, or --no-checkpoints";
  }
  if (dry_ && !text.empty())
    throw failure(exit_disk, text + advice);
  if (text.empty() && !choice_.goes_on() && options_.keep.newest > 0 &&
      options_.checkpoint_every.of == period::steps && options_.checkpoint_every.count > 0) {
    const double saves = std::ceil(static_cast<double>(extent_.last - extent_.first) /
                                   options_.checkpoint_every.count);
    text = lacking_space(choice_.folder, run_.prog, ranks,
                         std::min(options_.keep.newest + 1, static_cast<int64_t>(saves)));
  }
  if (!text.empty())
    run_.warn(text);
}

// Somebody has put them there, perhaps to have them on another disk.
void trainer::warn_of_links() const {
  const std::string &folder = checkpoints_->folder();
  const std::vector<std::string> links = linked_checkpoints(folder);
  if (links.empty())
    return;
  std::string names;
  for (const std::string &link : links)
    names += (names.empty() ? "" : ", ") + link;
  run_.warn(folder + ": " + names + (links.size() == 1 ? ": is a link" : ": are links") +
            ", which --keep neither counts nor removes");
}

// Of the log, those before the run went on included.
int64_t trainer::steps_between_lines() const {
  int64_t before = 1;
  if (const std::string configuration = choice_.configuration(); !configuration.empty())
    before = kept_options(run_.prog, configuration, run_.table).log_every;
  return std::max(before, options_.log_every);
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
  run_.ranks.together([&] {
    if (checkpoints_ && run_.is_first())
      warn_of_links();
  });
  if (checkpoints_)
    checkpoints_->open(has_own_checkpoint_ ? resumed_.sequence : UINT64_MAX);
  prunes_next_ = choice_.goes_on();
  run_.ranks.together([&] {
    if (changes) {
      folder_->begin_samples(extent_.first, /*writes=*/text_ != nullptr);
      samples_.emplace(choice_.folder);
    }
    log_ = std::make_unique<step_log>(changes ? log_of(choice_.folder) : "", extent_.first);
    log_->expect(held_out_->results());
    if (!log_->damaged().empty())
      run_.warn(log_of(choice_.folder) +
                ": has lines that nobody wrote so; what it was is kept as " + log_->damaged() +
                ", and it goes on with those that can be read");
    else if (has_own_checkpoint_ && changes &&
             log_->last_step() + steps_between_lines() <= extent_.first)
      run_.warn(log_of(choice_.folder) + format_text(": has no line of the steps behind %" PRId64
                                                     ", and the run is at %" PRId64
                                                     ": they were removed, or could not be written",
                                                     log_->last_step(), extent_.first));
    if (changes)
      folder_->write_configuration(
          run_.prog, run_.table, options_,
          {layout_, data_->identities(),
           validation_ ? validation_->identities() : std::vector<data_identity>(),
           extent_.order.number, extent_.order.seed, origin_});
  });
}

} // namespace trainc
