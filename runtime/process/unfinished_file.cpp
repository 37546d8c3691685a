// SPDX-License-Identifier: Apache-2.0
//
// A list that the thread of signals reads.
#include "runtime/process/unfinished_file.h"

#include <unistd.h>

namespace trainc {
namespace {

std::mutex list;
unfinished_file *first = nullptr;

} // namespace

unfinished_file::unfinished_file(std::string path) : path_(std::move(path)) {
  std::lock_guard lock(list);
  next_ = first;
  if (next_)
    next_->previous_ = this;
  first = this;
}

unfinished_file::~unfinished_file() {
  std::lock_guard lock(list);
  (previous_ ? previous_->next_ : first) = next_;
  if (next_)
    next_->previous_ = previous_;
}

std::unique_lock<std::mutex> hold_unfinished_files() { return std::unique_lock(list); }

void remove_unfinished_files() {
  list.lock();
  for (const unfinished_file *file = first; file; file = file->next_)
    ::unlink(file->path_.c_str());
}

} // namespace trainc
