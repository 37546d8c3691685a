// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/checkpoint_choice.h"

#include "runtime/files/run_files.h"
#include "runtime/options/run_configuration.h"
#include "runtime/run/run_choice.h"

#include <cmath>
#include <filesystem>
#include <set>

namespace trainc {

keep_policy policy_of(const run &run, const std::string &folder) {
  keep_policy policy = run.options.keep;
  std::string configuration = configuration_of(folder);
  if (!std::filesystem::exists(configuration))
    return policy;
  const keep_policy kept = read_kept_run(run.prog, configuration, run.table).options.keep;
  const std::set<std::string> &given = run.options.given;
  if (!given.count("keep"))
    policy.newest = kept.newest;
  if (!given.count("keep-every"))
    policy.every = kept.every;
  if (!given.count("keep-best"))
    policy.best_by = kept.best_by;
  return policy;
}

std::string best_metric_of(const keep_policy &policy) {
  return policy.best_by == "none" ? policy.watched() : policy.best_by;
}

const checkpoint_info *best_of(const std::vector<checkpoint_info> &all, const std::string &metric) {
  const checkpoint_info *best = nullptr;
  for (const checkpoint_info &info : all)
    if (const double value = info.metric(metric);
        !std::isnan(value) && (!best || value <= best->metric(metric)))
      best = &info;
  return best;
}

// The checkpoint `best` or `step-N` of the run in `folder`.
static std::string checkpoint_by_word(const run &run, const std::string &word,
                                      const std::string &folder) {
  const std::string where = checkpoints_of(folder);
  const std::vector<checkpoint_info> all =
      list_checkpoints(where, [&](const std::string &problem) { run.warn(problem); });
  if (word == "best") {
    const std::string metric = best_metric_of(policy_of(run, folder));
    if (const checkpoint_info *best = best_of(all, metric))
      return best->path;
    throw failure(exit_checkpoint, where + ": no checkpoint has a " + metric +
                                       "\n  try: --checkpoint latest; or train with "
                                       "--evaluate-every and --keep-best");
  }
  const int64_t step = step_of_checkpoint(word);
  std::string steps;
  for (const checkpoint_info &info : all) {
    if (info.step == step)
      return info.path;
    steps += (steps.empty() ? "step-" : ", step-") + std::to_string(info.step);
  }
  throw failure(exit_checkpoint, where + ": has no checkpoint " + word + "\n  try: " +
                                     (steps.empty() ? "--run DIR" : "latest, " + steps));
}

std::string chosen_checkpoint(const run &run) {
  const std::string &which = run.options.checkpoint;
  const std::string folder =
      is_checkpoint_of_run(run.options) ? latest_run_to_read(run.prog, run.options) : "";
  const std::string where = folder.empty() ? "" : checkpoints_of(folder);
  const bool is_word = !folder.empty() && which != "latest";
  std::string path =
      find_checkpoint(is_word ? checkpoint_by_word(run, which, folder) : which, where, run.prog,
                      [&](const std::string &text) { run.warn(text); })
          .path;
  if (path.empty())
    throw failure(exit_checkpoint, where +
                                       ": holds no checkpoint\n  try: --run DIR, or --checkpoint "
                                       "initial for the parameters that the model came with");
  return path;
}

} // namespace trainc
