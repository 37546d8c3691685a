// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/output_file.h"

#include "runtime/failure.h"
#include "runtime/files/run_place.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

namespace trainc {
namespace {

namespace fs = std::filesystem;

std::string temporary_of(const std::string &path) { return path + ".writing"; }

} // namespace

output_file::output_file(std::string path, file_operations &files)
    : path_(std::move(path)), files_(files) {
  temporary_.emplace(temporary_of(path_));
  file_ = files_.create(temporary_->path().c_str());
  if (file_ < 0 && errno == EEXIST)
    throw failure(exit_disk, path_ + ": cannot be written: " + temporary_->path() +
                                 ", where it is written first, is not a regular file"
                                 "\n  try: to move that away");
  if (file_ < 0)
    refuse();
}

output_file::~output_file() {
  if (file_ >= 0)
    files_.close(file_);
  if (temporary_)
    files_.remove_file(temporary_->path().c_str());
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

void output_file::publish() { publish_together({this}); }

void output_file::finish() {
  if (files_.sync(file_) != 0)
    refuse();
  const int closed = files_.close(file_);
  file_ = -1;
  if (closed != 0)
    refuse();
}

void output_file::give_name() {
  if (files_.rename(temporary_->path().c_str(), path_.c_str()) != 0)
    refuse();
}

std::string output_file::folder() const {
  const std::string folder = std::filesystem::path(path_).parent_path();
  return folder.empty() ? "." : folder;
}

void output_file::refuse() {
  throw failure(exit_disk, path_ + ": cannot be written: " + strerror(errno));
}

void publish_together(const std::vector<output_file *> &files) {
  for (output_file *file : files)
    file->finish();
  {
    const auto held = hold_unfinished_files();
    for (output_file *file : files)
      file->give_name();
  }
  std::set<std::string> synced;
  for (output_file *file : files)
    if (synced.insert(file->folder()).second && file->files_.sync_path(file->folder().c_str()) != 0)
      file->refuse();
  for (output_file *file : files)
    file->temporary_.reset();
}

void replace_file(const std::string &path, const std::string &text, file_operations &files) {
  output_file file(path, files);
  file.write(text);
  file.publish();
}

bool can_replace(const std::string &path) { return exists(path) || exists(temporary_of(path)); }

void check_output_path(const std::string &path, const std::vector<std::string> &kept,
                       const char *why, const char *option) {
  std::error_code ignored;
  for (const std::string &name : {path, temporary_of(path)}) {
    auto refuse = [&](const char *reason) {
      throw failure(exit_usage, name + ": " + reason + "\n  try: " + option + " with another file");
    };
    const bool is_there = exists(name);
    if (is_there && !fs::is_regular_file(name, ignored))
      refuse("is not a regular file, and the result would take its place");
    if (is_there && fs::exists(fs::path(name).parent_path() / "manifest.json", ignored))
      refuse("belongs to a checkpoint");
    if (belongs_to_run(name))
      refuse("belongs to a run");
    if (!is_there)
      continue;
    for (const std::string &other : kept)
      if (fs::equivalent(name, other, ignored))
        refuse(why);
  }
}

} // namespace trainc
