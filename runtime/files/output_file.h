// SPDX-License-Identifier: Apache-2.0
//
// A command's results as files: complete under their names, or what was there before.
#pragma once

#include "runtime/files/file_operations.h"
#include "runtime/process/unfinished_file.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainc {

// Written beside its place, made durable, then renamed, and its name made durable. Everything
// throws `failure` (exit_disk).
class output_file {
public:
  explicit output_file(std::string path, file_operations &files = real_file_operations());
  ~output_file(); // removes what was not published
  output_file(const output_file &) = delete;
  output_file &operator=(const output_file &) = delete;

  // After all that was written in this way before.
  void write(const void *data, int64_t bytes);
  void write(std::string_view text) { write(text.data(), static_cast<int64_t>(text.size())); }
  void write_at(int64_t offset, const void *data, int64_t bytes);
  int64_t written() const { return written_; } // bytes, by `write`
  // Where it lies until it is published.
  const std::string &unfinished_path() const { return temporary_->path(); }
  void publish();

private:
  friend void publish_together(const std::vector<output_file *> &files);

  void finish(); // durable, except its name
  void give_name();
  std::string folder() const;
  [[noreturn]] void refuse();

  std::string path_;
  std::optional<unfinished_file> temporary_; // until it is published
  file_operations &files_;
  int file_ = -1;
  int64_t written_ = 0;
};

// All results of a command: every one is durable before the first gets its name, so that what
// fails for want of room changes nothing, and a signal ends the process before or after all the
// names. They get them in this order, should anything else end it.
void publish_together(const std::vector<output_file *> &files);

// A result that is there at once: whole under its name, or what was there before.
void replace_file(const std::string &path, const std::string &text,
                  file_operations &files = real_file_operations());

// Whether something is at `path`, or where its beginning is written, that a result could replace.
bool can_replace(const std::string &path);

constexpr char read_by_command[] = "is read by this command";

// Throws `failure` (exit_usage) where a result may not take the place of what is at `path`, nor its
// beginning that of what has the temporary name: a device, a pipe, a part of a run or a checkpoint,
// there or to come, or one of the files that are `kept`; the message says why. `option`
// is the one that names the path.
void check_output_path(const std::string &path, const std::vector<std::string> &kept,
                       const char *why = read_by_command, const char *option = "-o");

} // namespace trainc
