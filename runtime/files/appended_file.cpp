// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/appended_file.h"

#include "runtime/files/file_operations.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trainc {

appended_file::~appended_file() { close(); }

void appended_file::close() {
  if (file_ >= 0)
    ::close(file_);
  file_ = -1;
}

int appended_file::open(const std::string &path, bool keeps) {
  constexpr int flags =
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK; // no pipe is waited for
  file_ = ::open(path.c_str(), flags | (keeps ? 0 : O_TRUNC), 0666);
  return is_open() ? 0 : -1;
}

bool appended_file::put(const void *bytes, size_t size) const {
  return real_file_operations().write_all(file_, bytes, size) == 0;
}

// What gets through of a piece that fails is taken back, or at least goes on in no other.
void appended_file::append(const void *bytes, size_t size) {
  if (!is_open() || (torn_ && !after_torn_))
    return;
  struct stat before;
  const bool known = fstat(file_, &before) == 0;
  if ((!torn_ || put(after_torn_, strlen(after_torn_))) && put(bytes, size)) {
    torn_ = false;
    return;
  }
  error_ = errno;
  torn_ = !known || (ftruncate(file_, before.st_size) != 0) || torn_;
}

void appended_file::look() {
  struct stat own;
  if (!is_open() || fstat(file_, &own) != 0 || own.st_nlink > 0)
    return;
  error_ = ENOENT;
  close();
}

} // namespace trainc
