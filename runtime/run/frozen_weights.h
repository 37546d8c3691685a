// SPDX-License-Identifier: Apache-2.0
//
// The arena of frozen weights: a part of the file that the compiler wrote with the trainer, mapped
// read-only. All ranks of a host, and other trainers from that file, have its pages once.
#pragma once

#include "runtime/program.h"

#include <string>

namespace trainc {

class frozen_weights {
public:
  // Of a program that has some. Compares every weight with its checksum. Throws `failure`
  // (exit_checkpoint) where the file is not the program's own or is damaged, (exit_machine) where
  // it cannot be mapped.
  frozen_weights(const program &program, const std::string &path);
  ~frozen_weights();
  frozen_weights(const frozen_weights &) = delete;
  frozen_weights &operator=(const frozen_weights &) = delete;

  char *base() const { return mapping_ + begin_; } // 64-byte aligned

private:
  char *mapping_ = nullptr;
  size_t bytes_ = 0;
  int64_t begin_ = 0; // of the weights in the file
};

} // namespace trainc
