// SPDX-License-Identifier: Apache-2.0
//
// What a language model writes while it trains: RUN/samples/step-00000100.txt, ... Each is complete
// and durable, or not there.
#pragma once

#include "runtime/files/file_operations.h"

#include <cstdint>
#include <string>

namespace trainc {

class sample_folder {
public:
  explicit sample_folder(const std::string &run, file_operations &files = real_file_operations());

  const std::string &path() const { return path_; }
  // Makes the folder. -1, with errno, where that fails; likewise below.
  int make();
  // Removes samples of steps after this one, -1: of all, and what a kill left half written. Of
  // other files none.
  int remove_behind(int64_t step);
  bool has(int64_t step) const;
  // In place of the one that is there. Allocates nothing.
  int write(int64_t step, const std::string &text);

private:
  std::string path_;
  file_operations &files_;
};

} // namespace trainc
