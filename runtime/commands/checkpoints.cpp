// SPDX-License-Identifier: Apache-2.0
//
// `checkpoints`: what a run has saved, whether it is whole, and what of it need not stay.
#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/commands/commands.h"
#include "runtime/files/run_files.h"
#include "runtime/run/checkpoint_choice.h"
#include "runtime/run/run_choice.h"
#include "runtime/run/run_folder.h"
#include "runtime/run/step_log.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace trainc {
namespace {

struct found_checkpoint {
  checkpoint_info info;
  std::string problem; // empty: it can be gone on from
  bool is_best = false;
};

int64_t bytes_of(const checkpoint_info &info) {
  int64_t bytes = 0;
  for (const checkpoint_info::file &file : info.files)
    bytes += file.bytes;
  return bytes;
}

// Oldest first. Those without a readable manifest have a path and a problem.
std::vector<found_checkpoint> find_all(const std::string &folder, const program &program,
                                       bool reads_all) {
  std::vector<found_checkpoint> found;
  for (checkpoint_info &info : list_checkpoints(
           folder, [&](const std::string &problem) { found.emplace_back().problem = problem; }))
    found.push_back({std::move(info), ""});
  std::reverse(found.begin(), found.end());
  if (!reads_all)
    return found;
  for (found_checkpoint &entry : found) {
    if (!entry.problem.empty())
      continue;
    try {
      check_model(entry.info, program);
      verify_files(entry.info);
      check_sound(entry.info, program);
    } catch (const failure &error) {
      entry.problem = error.message;
    }
  }
  return found;
}

// Where the run does not say by what, or its configuration cannot be read, by the held-out loss.
void mark_best(const run &run, const std::string &folder, std::vector<found_checkpoint> &found) {
  keep_policy policy;
  try {
    policy = policy_of(run, folder);
  } catch (const failure &error) {
    run.warn(error.message);
  }
  std::vector<checkpoint_info> all; // newest first
  for (const found_checkpoint &entry : found)
    all.insert(all.begin(), entry.info);
  if (const checkpoint_info *best = best_of(all, best_metric_of(policy)))
    for (found_checkpoint &entry : found)
      entry.is_best = entry.problem.empty() && entry.info.path == best->path;
}

void print_as_json(const found_checkpoint &entry, const char *state) {
  const checkpoint_info &info = entry.info;
  nlohmann::ordered_json line = {{"checkpoint", info.path},
                                 {"step", info.step},
                                 {"skipped_steps", info.skipped_steps},
                                 {"bytes", bytes_of(info)},
                                 {"ranks", info.files.size()},
                                 {"loss", info.loss},
                                 {"held_out_loss", nullptr}};
  for (const auto &[name, value] : info.evaluated)
    line[held_out_prefix + name] = value;
  line["best"] = entry.is_best;
  if (*state)
    line["state"] = state;
  if (!entry.problem.empty())
    line["problem"] = entry.problem;
  printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print(const found_checkpoint &entry, bool as_json, const char *state) {
  if (as_json)
    return print_as_json(entry, state);
  if (!entry.problem.empty()) {
    printf("%s\n", entry.problem.c_str());
    return;
  }
  const checkpoint_info &info = entry.info;
  char number[32];
  printf("%s  %" PRId64 " bytes  loss %s", info.path.c_str(), bytes_of(info),
         json_number(number, info.loss));
  for (const auto &[result, value] : info.evaluated) {
    std::string name = without_controls(result);
    std::replace(name.begin(), name.end(), '_', ' ');
    printf("  held-out %s %s", name.c_str(), json_number(number, value));
  }
  printf("%s%s%s\n", entry.is_best ? "  best" : "", *state ? "  " : "", state);
}

void prune(const std::string &folder, std::vector<found_checkpoint> &found,
           const keep_policy &policy, bool as_json) {
  std::vector<kept_checkpoint> kept;
  for (const found_checkpoint &entry : found) {
    const checkpoint_info &info = entry.info;
    const bool goes = entry.problem.empty() && !is_link(info.path.c_str());
    kept.push_back({info.step, info.sequence, static_cast<int>(info.files.size()),
                    info.metric(policy.best_by), goes});
    if (!goes)
      print(entry, as_json, entry.problem.empty() ? "a link, left as it is" : "left as it is");
  }
  for (size_t i; (i = first_superfluous(kept, policy)) < kept.size();) {
    const checkpoint_info &info = found[i].info;
    const std::string name = std::filesystem::path(info.path).filename();
    if (remove_checkpoint(folder, name.c_str(), static_cast<int>(info.files.size())) != 0)
      throw failure(exit_disk, info.path + ": cannot be removed: " + strerror(errno));
    print(found[i], as_json, "removed");
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

} // namespace

int checkpoints(run &run) {
  if (!run.is_first())
    return exit_success;
  std::string folder = latest_run_to_read(run.prog, run.options);
  std::string where = checkpoints_of(folder), action = run.options.action;
  bool as_json = run.options.json;
  if (find_all(where, run.prog, /*reads_all=*/false).empty())
    throw failure(exit_checkpoint, where + ": holds no checkpoint\n  try: --run DIR");
  std::optional<run_folder> own;
  if (action == "prune") { // nobody may write there meanwhile
    own.emplace(folder, /*takes_over=*/true);
    recover_checkpoints(where);
  }
  std::vector<found_checkpoint> found = find_all(where, run.prog, action != "list");
  if (action == "prune") {
    prune(where, found, policy_of(run, folder), as_json);
    return exit_success;
  }
  mark_best(run, folder, found);
  bool is_whole = true;
  for (const found_checkpoint &entry : found) {
    print(entry, as_json, action == "verify" && entry.problem.empty() ? "sound" : "");
    is_whole &= entry.problem.empty();
  }
  return is_whole ? exit_success : exit_checkpoint;
}

} // namespace trainc
