// SPDX-License-Identifier: Apache-2.0
#include "runtime/output_file.h"

#include "runtime/failure.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace trainc {

output_file::output_file(std::string path, file_operations &files)
    : path_(std::move(path)), temporary_(path_ + ".writing"), files_(files) {
  file_ = files_.create(temporary_.c_str());
  if (file_ < 0)
    refuse();
}

output_file::~output_file() {
  if (file_ >= 0)
    files_.close(file_);
  if (!published_)
    files_.remove_file(temporary_.c_str());
}

void output_file::write(const void *data, int64_t bytes) {
  if (files_.write_all(file_, data, static_cast<size_t>(bytes)) != 0)
    refuse();
  written_ += bytes;
}

void output_file::write_at(int64_t offset, const void *data, int64_t bytes) {
  if (files_.write_all_at(file_, data, static_cast<size_t>(bytes), offset) != 0)
    refuse();
}

void output_file::publish() {
  if (files_.sync(file_) != 0)
    refuse();
  const int closed = files_.close(file_);
  file_ = -1;
  if (closed != 0 || files_.rename(temporary_.c_str(), path_.c_str()) != 0)
    refuse();
  published_ = true;
}

void output_file::refuse() {
  throw failure(exit_disk, path_ + ": cannot be written: " + strerror(errno));
}

void check_output_path(const std::string &path, const std::vector<std::string> &read) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  auto refuse = [&](const char *why) {
    throw failure(exit_usage, path + ": " + why + "\n  try: -o with another file");
  };
  if (!fs::exists(path, ignored))
    return;
  if (!fs::is_regular_file(path, ignored))
    refuse("is no regular file, and the result would take its place");
  if (fs::exists(fs::path(path).parent_path() / "manifest.json", ignored))
    refuse("belongs to a checkpoint");
  for (const std::string &input : read)
    if (fs::equivalent(path, input, ignored))
      refuse("is read by this command");
}

} // namespace trainc
