// SPDX-License-Identifier: Apache-2.0
//
// Everything that is wrong with them is said at once.
#include "runtime/options/train_options.h"

#include "runtime/failure.h"
#include "runtime/name_pattern.h"
#include "runtime/options/option_table.h"
#include "runtime/options/schedule_rate.h"
#include "runtime/switches.h"

#include <cinttypes>
#include <cmath>
#include <cstring>

namespace trainc {
namespace {

constexpr int64_t longest_sample = 1 << 30; // bytes

void check_watch(const trainer_options &options, problem_list &problems) {
  if (options.asks_for("dry-run-steps", "dry-run") && !options.dry_run)
    problems.add("option --dry-run-steps: the run is not a dry one\n  try: --steps");
  const bool watches = !options.watch.empty() || !options.dump.empty();
  for (const char *option : {"watch-every", "watch-folder"})
    if (!watches && options.asks_for(option, "watch"))
      problems.add(std::string("option --") + option +
                   ": no tensor is watched\n  try: --watch '.*'");
  for (const auto &[option, pattern] :
       {std::pair("--watch", options.watch), std::pair("--dump", options.dump)}) {
    std::string why;
    if (pattern.empty())
      continue;
    if (!name_pattern::parse(pattern, why))
      problems.add(std::string("option ") + option + ": '" + pattern +
                   "' is not a regular expression: " + why);
    if (options.dry_run && options.watch_folder.empty())
      problems.add(std::string("option ") + option +
                   ": a dry run keeps nothing\n  try: --watch-folder DIR");
  }
}

void check_initialise(const trainer_options &options, problem_list &problems) {
  if (!options.initialise.empty() && !options.resume.empty() && options.resume != "auto")
    problems.add("option --initialise: a resumed run has its parameters\n  try: one of the two, or "
                 "--resume auto, which takes them where it begins");
  if (options.initialise.empty() && !options.rename.empty())
    problems.add("option --rename: there is no file whose names it could change\n  try: "
                 "--initialise FILE");
  for (const std::string &words : options.rename)
    if (std::string why; !name_change::parse(words, why))
      problems.add("option --rename: '" + words + "': " + why +
                   "\n  try: --rename 'query\\.weight=query.base.weight'");
}

void check_profile(const trainer_options &options, problem_list &problems) {
  if (!options.profile_steps && options.asks_for("profile-file", "profile-steps"))
    problems.add("option --profile-file: no steps are profiled\n  try: --profile-steps 10:12");
  if (!options.profile_steps)
    return;
  if (options.dry_run && options.profile_file.empty())
    problems.add("option --profile-steps: a dry run keeps nothing\n  try: --profile-file FILE");
  if (!options.watch.empty() || !options.dump.empty())
    problems.add(std::string("option --profile-steps: not beside --") +
                 (options.watch.empty() ? "dump" : "watch") +
                 ", whose time would be measured\n  try: one of the two");
  if (options.histograms_every > 0 && !options.no_tensorboard)
    problems.add("option --profile-steps: not beside --histograms-every, whose time would be "
                 "measured\n  try: --histograms-every 0");
}

void check_histograms(const trainer_options &options, problem_list &problems) {
  if (options.histograms_every > 0 && options.no_tensorboard &&
      options.asks_for("histograms-every", "no-tensorboard"))
    problems.add("option --histograms-every: --no-tensorboard writes none\n  try: one of the two");
  if (options.histograms_every > 0 && options.dry_run &&
      options.asks_for("histograms-every", "dry-run"))
    problems.add("option --histograms-every: a dry run keeps nothing\n  try: one of the two");
}

} // namespace

void check_train_options(const program &program, const trainer_options &options) {
  problem_list problems;
  if (options.steps.has_value() == options.epochs.has_value())
    problems.add(options.steps ? "train: takes --steps or --epochs, not both"
                               : "train: needs --steps or --epochs\n  try: --steps 1000");
  const bool evaluates = options.evaluate_every.count > 0;
  bool validates = !options.validation_tokens.empty() || !options.validation_data.empty();
  if (evaluates && options.holdout == 0 && !validates)
    problems.add("option --evaluate-every: there is no held-out part of the data\n  try: --holdout "
                 "0.1, or --validation-data");
  if (validates && options.holdout > 0)
    problems.add("option --holdout: --validation-data and --validation-tokens take its place");
  check_initialise(options, problems);
  augmentation changes;
  if (std::string why; !augmentation::parse(options.augment, changes, why))
    problems.add("option --augment: " + why + "\n  try: --augment flip,crop=4");
  for (const char *option : {"validation-data", "validation-tokens", "validation-batches"})
    if (!evaluates && options.asks_for(option, "evaluate-every"))
      problems.add(std::string("option --") + option +
                   ": nothing is evaluated while training\n  try: --evaluate-every 100");
  if (is_of_evaluation(options.keep.best_by) && !evaluates)
    problems.add(
        "option --keep-best: nothing is evaluated while training\n  try: --evaluate-every 100");
  if (options.patience > 0 && !evaluates)
    problems.add("option --patience: nothing is evaluated while training\n  try: --evaluate-every "
                 "100");
  for (const char *option : {"prompt", "length", "temperature", "top-k"})
    if (options.sample_every == 0 && options.asks_for(option, "sample-every"))
      problems.add(std::string("option --") + option +
                   ": no samples are written\n  try: --sample-every 1000");
  if (options.sample_every > 0 && options.length > longest_sample)
    problems.add(format_text("option --length: %" PRId64
                             " bytes are more than a sample has, which is "
                             "held in memory\n  try: --length %" PRId64 " or less",
                             options.length, longest_sample));
  if (options.overwrite && !options.resume.empty())
    problems.add("option --overwrite: not beside --resume, which goes on with a run or begins in "
                 "an empty folder\n  try: one of the two");
  check_watch(options, problems);
  check_profile(options, problems);
  check_histograms(options, problems);
  auto clips = [](double most) { return most > 0 && std::isfinite(most); };
  if (clips(options.clip_norm) && clips(options.clip_value))
    problems.add("option --clip-value: with --clip-norm their order would matter\n  try: one of "
                 "the two");
  check_schedule(options, problems);
  check_switches(
      program,
      [&](int64_t i) {
        return options.hyperparameters[static_cast<size_t>(i)].value_or(
            program.hyperparameters[i].default_value);
      },
      [&](int64_t i) { return "--" + option_name(program.hyperparameters[i]); },
      [&](const std::string &text) { problems.add("option " + text); });
  problems.throw_if_any(exit_usage);
}

} // namespace trainc
