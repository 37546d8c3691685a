// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_plan.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/files/run_files.h"
#include "runtime/options/run_configuration.h"
#include "runtime/run/host_folders.h"
#include "runtime/train/same_run.h"

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <thread>

namespace trainc {
namespace {

constexpr int most_starts_at_once = 1000; // of runs that take the next number
// Where a launcher was killed, ranks on other hosts live for some seconds, with their locks.
constexpr int waits_for_old_ranks = 10;

std::vector<std::string> of_first_rank(communicator &ranks, const std::vector<std::string> &own) {
  std::vector<std::string> all(std::stoul(ranks.broadcast(std::to_string(own.size()))));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = ranks.broadcast(i < own.size() ? own[i] : "");
  return all;
}

// Finds what a plan says, part by part.
class planner {
public:
  planner(run &run, run_sources &sources) : run_(run), options_(run.options), sources_(sources) {}
  run_plan operator()();

private:
  void take_folders();
  void check_groups(size_t hosts);
  void find_extent();
  std::string find_checkpoint_of_run();
  std::string weights_to_begin_with() const;
  void take_folder(bool takes_over);
  void choose_origin(const std::string &path);
  void refuse_lost_checkpoints() const;
  void refuse_older(const std::string &path, const std::string &where) const;
  void open_data();
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
  run_.ranks.together([&] { find_layout(run_, plan_); });
  open_data();
  run_.ranks.together([&] {
    find_position(run_, plan_, *sources_.data);
    find_loss_scale(run_, plan_);
  });
  settle_last_step();
  return std::move(plan_);
}

void planner::open_data() {
  sources_.data.emplace(run_.open(run_.request_of_data(!options_.no_shuffle, plan_.order.seed,
                                                       /*partial_batches=*/true)));
  bool has_buffers = false;
  for (const parameter_place &parameter : run_.prog.parameters)
    has_buffers |= parameter.role == parameter_role::buffer;
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

// The folder of the run; where hosts do not share it, one of each.
void planner::take_folders() {
  auto take = [&] { take_folder(plan_.choice.goes_on() || options_.overwrite); };
  const std::vector<int> hosts = first_ranks_of_hosts(run_.ranks);
  std::string next; // a number that is free on each of several hosts
  for (size_t i = 0; i < hosts.size() && hosts.size() > 1 && options_.run.empty(); ++i)
    next = std::max(next, run_.ranks.broadcast(next_run(run_.prog), hosts[i]));
  run_.ranks.together([&] {
    plan_.choice = choose_run(run_.prog, options_);
    if (plan_.choice.folder.empty())
      plan_.choice.folder = whole_path(next);
    if (const std::string path = plan_.choice.configuration(); !path.empty())
      plan_.before = read_kept_run(run_.prog, path, run_.table);
    if (run_.is_first())
      take();
  });
  plan_.choice.folder = run_.ranks.broadcast(plan_.choice.folder);
  if (options_.no_checkpoints)
    sources_.groups.emplace(run_.ranks);
  else
    sources_.groups.emplace(run_.ranks, plan_.choice.folder);
  check_groups(hosts.size());
  run_.ranks.together([&] {
    if (sources_.groups->keeps() && !run_.is_first())
      take();
  });
}

void planner::check_groups(size_t hosts) {
  const std::vector<int> keepers = sources_.groups->keepers();
  for (int keeper : keepers)
    plan_.keeping_hosts.push_back(run_.ranks.broadcast(host_name(), keeper));
  run_.ranks.together([&] {
    if (!run_.is_first() || options_.no_checkpoints)
      return;
    if (options_.checkpoints == folder_kind::shared && keepers.size() > 1)
      throw failure(exit_disk, plan_.choice.folder + ": is not one folder on all hosts: " +
                                   joined(plan_.keeping_hosts, ", ") +
                                   " do not see each other's\n  try: --run DIR on a file system "
                                   "that they share, or --checkpoints per-host");
    if (options_.checkpoints == folder_kind::per_host && keepers.size() < hosts)
      throw failure(exit_disk, plan_.choice.folder +
                                   ": hosts see one folder there\n  try: --checkpoints shared, or "
                                   "--run DIR on a disk of each host");
  });
}

// What the run goes on from, or branches off; empty: it begins. Of all ranks the first has it.
std::string planner::find_checkpoint_of_run() {
  const run_choice &choice = plan_.choice;
  const bool goes_on = choice.goes_on(), is_latest = choice.checkpoint == "latest";
  const std::string where = checkpoints_of(choice.folder);
  auto warn = [&](const std::string &text) { run_.warn(text); };
  if (goes_on && !options_.dry_run)
    run_.ranks.together([&] {
      if (sources_.groups->keeps())
        recover_checkpoints(where);
    });
  if (goes_on && is_latest && !sources_.groups->is_one())
    return share_newest_checkpoint(run_.ranks, *sources_.groups, run_.prog, where,
                                   /*copies=*/!options_.dry_run, warn);
  std::string path;
  run_.ranks.together([&] {
    if (run_.is_first() && !choice.checkpoint.empty())
      path = find_checkpoint(choice.checkpoint, where, run_.prog, warn).path;
    if (!path.empty() && goes_on && !is_latest) // the newest that is whole
      refuse_older(path, where);
  });
  return path;
}

// Finds the run's folder and the checkpoint to go on from, before anything is allocated.
void planner::find_extent() {
  plan_.order.seed = options_.seed;
  take_folders();
  run_.ranks.together([&] {
    if (sources_.groups->keeps() && !plan_.choice.goes_on())
      check_given_up(plan_.choice.folder, input_files_of(run_.prog, run_.table, options_));
    if (!run_.is_first())
      return;
    if (options_.sample_every > 0)
      check_folder_of_run(samples_of(plan_.choice.folder));
    if (!options_.no_tensorboard)
      check_folder_of_run(events_of(plan_.choice.folder));
    plan_.origin.parameters = weights_to_begin_with();
    plan_.origin.renames = options_.rename;
  });
  const bool begins = plan_.choice.checkpoint.empty();
  std::string path = run_.ranks.broadcast(find_checkpoint_of_run());
  run_.ranks.together([&] {
    if (sources_.groups->keeps() && !begins && path.empty())
      refuse_lost_checkpoints();
    if (run_.is_first() && begins)
      hold_to(plan_, {});
    else if (run_.is_first())
      choose_origin(path);
  });
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
    compare_computation(run_, plan_);
  });
  plan_.first = plan_.resumed.step;
  plan_.order.seed = plan_.resumed.order.seed;
  if (plan_.has_own_checkpoint && plan_.resumed.watched == options_.keep.watched() &&
      !options_.new_data)
    plan_.best = plan_.resumed.best;
}

// A run whose checkpoints are out of sight does not begin anew.
void planner::refuse_lost_checkpoints() const {
  const std::string &folder = plan_.choice.folder;
  if (options_.resume == "latest" && holds_run(folder))
    throw failure(exit_checkpoint, folder +
                                       ": its log has steps, but no checkpoint is there\n  try: "
                                       "to bring its checkpoints back, --resume auto to begin "
                                       "anew if it never had one, or --overwrite");
  if (has_saved(folder))
    throw failure(exit_checkpoint,
                  checkpoints_of(folder) +
                      ": the run has had a checkpoint, and none is there\n  try: to bring "
                      "its checkpoints back (a disk that is not mounted?), or --overwrite "
                      "without --resume");
}

// By default under the next number that nobody else takes at this moment.
void planner::take_folder(bool takes_over) {
  const bool is_numbered = plan_.choice.folder.empty();
  for (int tries = 1;; ++tries)
    try {
      if (is_numbered)
        plan_.choice.folder = whole_path(next_run(run_.prog));
      if (options_.dry_run)
        check_run_folder(plan_.choice.folder, takes_over);
      else
        sources_.folder.emplace(plan_.choice.folder, takes_over);
      if (sources_.folder && !sources_.folder->is_lockable())
        run_.warn(plan_.choice.folder +
                  ": the file system has no locks: a second run there would not be "
                  "noticed\n  try: one run for each --run DIR");
      return;
    } catch (const folder_in_use &) {
      if (tries == (is_numbered ? most_starts_at_once : takes_over ? waits_for_old_ranks : 1))
        throw;
      if (!is_numbered)
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
}

// What the run begins with, or, if it has a checkpoint at `path`, began with.
void planner::choose_origin(const std::string &path) {
  if (!plan_.choice.goes_on()) {
    plan_.origin.checkpoint = whole_path(path);
    return hold_to(plan_, {});
  }
  const run_origin before = plan_.before ? plan_.before->configuration.origin : run_origin();
  if (!path.empty())
    warn_of_other_parameters(run_, plan_, before);
  if (!path.empty() || plan_.origin.parameters.empty())
    plan_.origin = before;
  if (!path.empty())
    return;
  hold_to(plan_, before);
  const std::string &from =
      plan_.origin.checkpoint.empty() ? plan_.origin.parameters : plan_.origin.checkpoint;
  run_.warn(checkpoints_of(plan_.choice.folder) +
            ": holds no checkpoint yet; training begins with " +
            (from.empty() ? "the initial parameters" : from));
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

table_rows describe_data(const trainer_options &options, const run_plan &plan,
                         const run_sources &sources) {
  const loader &data = *sources.data;
  const double batches = data.batches_per_epoch();
  std::string text = counted(data.samples(data_part::training), "sample") +
                     format_text(", %.8g %s an epoch", batches, batches == 1 ? "batch" : "batches");
  if (const int64_t rest = data.left_out(data_part::training); rest > 0)
    text += "; " + left_out_text(rest, /*of_each_epoch=*/true);
  table_rows rows = {{"training data", text}};
  if (plan.keeping_hosts.size() > 1)
    rows.emplace_back("folder", plan.choice.folder + " on each of " +
                                    joined(plan.keeping_hosts, ", ") + ", which do not share it");
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
