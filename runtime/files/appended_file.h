// SPDX-License-Identifier: Apache-2.0
//
// A file that grows while a run goes on. What is appended is there whole or not at all, and an
// error is kept instead of thrown: it does not end the run.
#pragma once

#include <cstddef>
#include <string>

namespace trainc {

class appended_file {
public:
  // `after_torn`: what sets a piece that could not be taken back apart from the next one. Null:
  // nothing can, and none follows.
  explicit appended_file(const char *after_torn = nullptr) : after_torn_(after_torn) {}
  ~appended_file();
  appended_file(const appended_file &) = delete;
  appended_file &operator=(const appended_file &) = delete;

  // Empties the file unless it `keeps` what is there. -1, with errno, where it cannot be opened.
  int open(const std::string &path, bool keeps);
  bool is_open() const { return file_ >= 0; }
  // At once, so that a kill loses nothing. Without a file it does nothing. Allocates nothing.
  void append(const void *bytes, size_t size);
  // Whether the file was removed: that is an error too, and nothing more is appended.
  void look();
  // Of the last piece that could not be appended; 0: all are there.
  int error() const { return error_; }

private:
  void close();
  bool put(const void *bytes, size_t size) const;

  const char *after_torn_;
  int file_ = -1;
  int error_ = 0;
  bool torn_ = false; // a part of a piece is at the end
};

} // namespace trainc
