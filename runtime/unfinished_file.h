// SPDX-License-Identifier: Apache-2.0
//
// Files that are not whole yet: a signal that ends the process removes them first, so that nobody
// finds half a result, or a disk full of them.
#pragma once

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
  friend void remove_unfinished_files(int signal);

  std::string path_;
  unfinished_file *previous_ = nullptr, *next_ = nullptr;
};

// SIGHUP, SIGINT and SIGTERM, unless they are ignored, remove what is unfinished; then they end the
// process as they would have.
void remove_unfinished_files_on_signals();

} // namespace trainc
