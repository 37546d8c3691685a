// SPDX-License-Identifier: Apache-2.0
//
// Files that are not whole yet: a signal that ends the process removes them first, so that nobody
// finds half a result, or a disk full of them.
#pragma once

#include <mutex>
#include <string>

namespace trainc {

// The name of such a file as long as the object lives, which makes and removes nothing itself.
class unfinished_file {
public:
  explicit unfinished_file(std::string path);
  ~unfinished_file();
  unfinished_file(const unfinished_file &) = delete;
  unfinished_file &operator=(const unfinished_file &) = delete;
  const std::string &path() const { return path_; }

private:
  friend void remove_unfinished_files();

  std::string path_;
  unfinished_file *previous_ = nullptr, *next_ = nullptr;
};

// While it is held, remove_unfinished_files waits, and so does who begins or finishes such a file.
std::unique_lock<std::mutex> hold_unfinished_files();

// For a process that ends: from now on, who begins or finishes such a file waits for ever.
void remove_unfinished_files();

} // namespace trainc
