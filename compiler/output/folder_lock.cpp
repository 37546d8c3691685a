// SPDX-License-Identifier: Apache-2.0
//
// flock: of the machine's processes also those in containers see each other, and the kernel ends
// the lock of one that was killed.
#include "compiler/output/folder_lock.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trainc {

LockState FolderLock::take(const std::string &folder, bool waits) {
  release();
  file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (waits ? 0 : O_NOFOLLOW));
  int result = file < 0 ? -1 : 0;
  while (file >= 0 && (result = flock(file, LOCK_EX | (waits ? 0 : LOCK_NB))) != 0 &&
         errno == EINTR) {
  }
  error = result == 0 ? 0 : errno;
  return error == 0             ? LockState::held
         : error == EWOULDBLOCK ? LockState::busy
                                : LockState::unavailable;
}

void FolderLock::release() {
  if (file >= 0)
    ::close(file);
  file = -1;
}

bool FolderLock::isStill(const std::string &folder) const {
  struct stat opened, named;
  return file >= 0 && fstat(file, &opened) == 0 && lstat(folder.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

} // namespace trainc
