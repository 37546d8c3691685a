// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/sample_folder.h"

#include "runtime/files/path_text.h"
#include "runtime/files/run_files.h"

#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace trainc {
namespace {

namespace fs = std::filesystem;

constexpr const char *half_written = ".writing-", *begin_of_name = "step-";

path_text path_of(const std::string &folder, const char *prefix, int64_t step) {
  return path_text("%s/%s%s%08" PRId64 ".txt", folder.c_str(), prefix, begin_of_name, step);
}

// The step of a file that `write` made, or began; -1 of any other.
int64_t step_of(const std::string &folder, const std::string &path, const char *prefix) {
  const size_t digits = folder.size() + 1 + std::string(prefix).size() + strlen(begin_of_name);
  if (path.size() <= digits)
    return -1;
  const int64_t step = strtoll(path.c_str() + digits, nullptr, 10);
  return step >= 0 && path == static_cast<const char *>(path_of(folder, prefix, step)) ? step : -1;
}

} // namespace

sample_folder::sample_folder(const std::string &run, file_operations &files)
    : path_(samples_of(run)), files_(files) {}

int sample_folder::make() {
  std::vector<std::string> made;
  return files_.make_directories(path_, made);
}

int sample_folder::remove_behind(int64_t step) {
  std::error_code none; // there may be no such folder
  for (auto &entry : fs::directory_iterator(path_, none)) {
    const std::string path = entry.path();
    if (step_of(path_, path, "") <= step && step_of(path_, path, half_written) < 0)
      continue;
    if (files_.remove_file(path.c_str()) != 0)
      return -1;
  }
  return 0;
}

bool sample_folder::has(int64_t step) const { return access(path_of(path_, "", step), F_OK) == 0; }

int sample_folder::write(int64_t step, const std::string &text) {
  const path_text unfinished = path_of(path_, half_written, step);
  const int file = files_.create(unfinished);
  if (file < 0)
    return -1;
  int result = files_.write_all(file, text.data(), text.size());
  if (result == 0)
    result = files_.sync(file);
  int reason = errno;
  if (files_.close(file) != 0 && result == 0) {
    result = -1;
    reason = errno;
  }
  if (result == 0 && files_.rename(unfinished, path_of(path_, "", step)) == 0)
    return files_.sync_path(path_.c_str());
  reason = result == 0 ? errno : reason;
  files_.remove_file(unfinished);
  errno = reason;
  return -1;
}

} // namespace trainc
