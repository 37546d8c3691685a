// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/run_choice.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/failure.h"
#include "runtime/files/file_operations.h"
#include "runtime/files/run_files.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <filesystem>
#include <vector>

namespace trainc {
namespace {

namespace fs = std::filesystem;
constexpr const char *runs_folder = "runs";

// The model's name as part of a path.
std::string run_prefix(const program &program) {
  std::string name;
  for (const char *c = program.model_name; *c; ++c)
    name += isalnum(static_cast<unsigned char>(*c)) || strchr("._-", *c) ? *c : '_';
  return (name.empty() || name[0] == '.' ? "run" + name : name) + "-";
}

// Of the folders of this model's runs, ascending.
std::vector<int64_t> run_numbers(const program &program) {
  std::string prefix = run_prefix(program);
  std::vector<int64_t> numbers;
  std::error_code ignored;
  for (auto &entry : fs::directory_iterator(runs_folder, ignored)) {
    std::string name = entry.path().filename();
    if (name.rfind(prefix, 0) != 0)
      continue;
    std::string digits = name.substr(prefix.size());
    if (digits.size() >= 4 && digits.size() <= 9 &&
        digits.find_first_not_of("0123456789") == std::string::npos)
      numbers.push_back(std::stoll(digits));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string run_path(const program &program, int64_t number) {
  return format_text("%s/%s%04" PRId64, runs_folder, run_prefix(program).c_str(), number);
}

// The run that a checkpoint, a folder of checkpoints or a run's own folder belongs to.
std::string run_around(const std::string &path) {
  for (fs::path at = whole_path(path); at.has_relative_path(); at = at.parent_path()) {
    if (exists(configuration_of(at)))
      return at;
    if (at.filename() == "checkpoints")
      return at.parent_path();
  }
  return "";
}

} // namespace

std::string without_configuration(const std::string &folder) {
  std::string newest;
  int64_t most = 0;
  std::error_code ignored;
  for (auto &entry : fs::directory_iterator(checkpoints_of(folder), ignored))
    if (is_checkpoint(entry.path()))
      if (const int64_t step = step_of_checkpoint(entry.path().filename());
          newest.empty() || step > most) {
        newest = entry.path();
        most = step;
      }
  return folder + ": has no configuration.json, which says what the run is\n  try: " +
         (newest.empty() ? std::string("another --run DIR")
                         : "--resume " + newest +
                               " and the run's options (or --config with a file of them), with "
                               "which it is written again; or another --run DIR");
}

std::string whole_path(const std::string &path) {
  std::error_code ignored;
  std::string whole = path.empty() ? "" : fs::absolute(path, ignored).lexically_normal().string();
  while (whole.size() > 1 && whole.back() == '/')
    whole.pop_back();
  return whole;
}

std::string newest_run(const program &program) {
  std::vector<int64_t> numbers = run_numbers(program);
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    if (std::string path = run_path(program, *number); exists(configuration_of(path)))
      return path;
  return "";
}

std::string next_run(const program &program) {
  std::vector<int64_t> numbers = run_numbers(program);
  return run_path(program, numbers.empty() ? 1 : numbers.back() + 1);
}

bool holds_run(const std::string &folder) {
  std::error_code ignored, unread;
  if (fs::file_size(log_of(folder), ignored) > 0 && !ignored)
    return true;
  for (auto &entry : fs::directory_iterator(checkpoints_of(folder), unread))
    if (entry.is_directory(ignored))
      return true;
  return unread == std::errc::permission_denied; // perhaps one, then
}

std::string run_choice::configuration() const {
  if (!configuration_of_host.empty())
    return configuration_of_host;
  std::string path = source.empty() ? "" : configuration_of(source);
  return !checkpoint.empty() && exists(path) ? path : "";
}

bool has_saved(const std::string &folder) { return exists(saved_of(folder)); }

run_choice choose_run(const program &program, const trainer_options &options) {
  run_choice choice = {whole_path(options.run), options.resume, ""};
  if (choice.checkpoint.empty())
    return choice;
  bool where_possible = choice.checkpoint == "auto";
  if (!where_possible && choice.checkpoint != "latest") {
    choice.source = run_around(choice.checkpoint);
    if (choice.folder.empty())
      choice.folder = choice.source;
    return choice;
  }
  if (choice.folder.empty())
    choice.folder = whole_path(newest_run(program));
  const std::string &copy = options.configuration_of_host;
  if (!choice.folder.empty() && (!copy.empty() || exists(configuration_of(choice.folder))))
    return {choice.folder, "latest", choice.folder, copy};
  if (where_possible)
    return {choice.folder, "", ""};
  throw failure(
      exit_checkpoint,
      choice.folder.empty()
          ? format_text("--resume latest: there is no run of this model below %s\n  try: --run DIR "
                        "with the folder of the run, or --resume auto to begin where there is none",
                        runs_folder)
      : holds_run(choice.folder)
          ? without_configuration(choice.folder)
          : choice.folder + ": holds no run that could go on\n  try: --run DIR with the folder of "
                            "the run, or --resume auto to begin where there is none");
}

bool is_checkpoint_of_run(const trainer_options &options) {
  const std::string &which = options.checkpoint;
  return which == "latest" || which == "best" ||
         (is_checkpoint_name(which) && (!options.run.empty() || !exists(which)));
}

// Empty where there is none, or nobody can say.
static std::string run_to_read(const program &program, const trainer_options &options) {
  if (options.checkpoint == "initial")
    return "";
  if (!is_checkpoint_of_run(options))
    return run_around(options.checkpoint);
  return options.run.empty() ? newest_run(program) : options.run;
}

std::string latest_run_to_read(const program &program, const trainer_options &options) {
  std::string folder = run_to_read(program, options);
  if (folder.empty())
    throw failure(exit_checkpoint,
                  std::string("there is no run of this model below ") + runs_folder +
                      "\n  try: --run DIR, --checkpoint PATH, or --checkpoint initial for the "
                      "parameters that the model came with");
  return folder;
}

std::string configuration_to_read(const program &program, const trainer_options &options) {
  const std::string folder = run_to_read(program, options);
  const std::string path = folder.empty() ? "" : configuration_of(folder);
  return !path.empty() && exists(path) ? path : "";
}

} // namespace trainc
