// SPDX-License-Identifier: Apache-2.0
//
// The arena of frozen weights: parts of files, mapped read-only. They are of the file that the
// compiler wrote with the trainer, and of external data of the model. All ranks of a host, and
// other trainers from these files, have their pages once.
#pragma once

#include "runtime/files/safetensors.h"
#include "runtime/program.h"

#include <cstddef>
#include <string>

namespace trainc {

class frozen_weights {
public:
  // Of a program that has some; `path` is the file that the compiler wrote. External data are where
  // that file says, or in `folder` where it is not empty, or beside `path`. Compares every weight
  // with its checksum. Throws `failure` (exit_checkpoint) where a file is not the program's own or
  // is damaged, (exit_machine) where it cannot be mapped.
  frozen_weights(const program &program, const std::string &path, const std::string &folder);
  ~frozen_weights();
  frozen_weights(const frozen_weights &) = delete;
  frozen_weights &operator=(const frozen_weights &) = delete;

  char *base() const { return base_; } // of a page

private:
  void fill(const program &program, const std::string &path, const safetensors_index &index,
            const std::string &folder);
  void map(const std::string &path, int64_t begin, int64_t bytes, int64_t offset);
  char *base_ = nullptr;
  size_t bytes_ = 0;
};

} // namespace trainc
