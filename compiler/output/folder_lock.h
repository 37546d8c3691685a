// SPDX-License-Identifier: Apache-2.0
//
// Keeps compilations apart that work on one folder.
#pragma once

#include <string>

namespace trainc {

enum class LockState {
  held,
  busy,        // another process holds it
  unavailable, // the folder cannot be opened, or its file system has no locks: FolderLock::problem
};

/// An advisory lock on a folder, which ends with this object or its process.
class FolderLock {
public:
  FolderLock() = default;
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;
  ~FolderLock() { release(); }

  /// Where another process holds it: waits, or is `busy`.
  LockState take(const std::string &folder, bool waits);
  void release();
  /// Whether the folder that was opened is still the one of this name.
  bool isStill(const std::string &folder) const;
  /// Why it is unavailable: an errno value.
  int problem() const { return error; }

private:
  int file = -1;
  int error = 0;
};

} // namespace trainc
