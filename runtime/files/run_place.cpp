// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/run_place.h"

#include "runtime/files/run_files.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <initializer_list>

namespace trainc {
namespace {

namespace fs = std::filesystem;

bool begins(const std::string &text, std::initializer_list<const char *> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char *word) { return text.starts_with(word); });
}

// Without links on the way, as far as it is there.
fs::path real_path(const fs::path &path) {
  std::error_code ignored;
  return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
}

// Whether a run has a file of that path below its folder, or will have.
bool is_of_run(const fs::path &below) {
  auto part = below.begin();
  const std::string first = *part++;
  if (part == below.end())
    return first == "." || begins(first, {"log.jsonl.damaged"}) ||
           std::any_of(std::begin(run_files), std::end(run_files), [&](const run_file &file) {
             return first == file.name ||
                    (!file.is_folder && first == file.name + std::string(".writing"));
           });
  const std::string second = *part;
  if (first == "checkpoints")
    return begins(second, {"step-", ".writing-step-", ".removing-step-"});
  if (first == "samples")
    return begins(second, {"step-", ".writing-step-"});
  if (first == "statistics")
    return is_of_statistics(second);
  if (first == "traces")
    return is_trace(second);
  return first == "tensorboard" && begins(second, {event_file_prefix});
}

bool is_folder_with_more(const fs::path &below) {
  const std::string first = *below.begin();
  return first == "." ||
         std::any_of(std::begin(run_files), std::end(run_files), [&](const run_file &file) {
           return file.is_folder && first == file.name && first != "statistics";
         });
}

// Whether the path has such a place below the folder of a run.
bool lies(const fs::path &path, const std::string &beginning,
          const std::function<bool(const fs::path &)> &is_such) {
  std::error_code ignored;
  if (!beginning.empty()) {
    const fs::path below = path.lexically_relative(real_path(beginning));
    if (!below.empty() && *below.begin() != ".." && is_such(below))
      return true;
  }
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / "configuration.json", ignored) && is_such(path.lexically_relative(at)))
      return true;
  return false;
}

} // namespace

bool belongs_to_run(const std::string &path, const std::string &beginning) {
  const fs::path folder = fs::path(path).parent_path();
  // A link itself is replaced, not what it leads to.
  return lies(real_path(folder.empty() ? "." : folder) / fs::path(path).filename(), beginning,
              &is_of_run);
}

bool is_taken_by_run(const std::string &folder, const std::string &beginning) {
  fs::path path = real_path(folder);
  if (!path.has_filename()) // a slash at its end
    path = path.parent_path();
  return lies(path, beginning, &is_folder_with_more);
}

} // namespace trainc
