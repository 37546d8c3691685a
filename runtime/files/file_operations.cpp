// SPDX-License-Identifier: Apache-2.0
//
// System calls that change files, and reading of files by position. Reads use
// pread rather than a mapping: a file that shrinks while the run goes on is an
// error message, not a bus error, and its pages do not count as ours.
#include "runtime/files/file_operations.h"

#include "runtime/failure.h"
#include "runtime/process/signs_of_life.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace trainc {

// What a call that may take long has returned.
static int noted(int result) {
  note_work();
  return result;
}

// What a file system says of a call that it does not have.
static bool is_not_offered(int error) {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK;
}

static std::atomic<bool> are_folders_unsynced = false;

bool syncs_folders() { return !are_folders_unsynced; }

int file_operations::create(const char *path) {
  // A pipe would wait for a reader, and what a link leads to is not ours.
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  const int file = ::open(path, flags, 0666);
  if (file < 0) {
    errno = errno == ELOOP || errno == ENXIO ? EEXIST : errno;
    return -1;
  }
  struct stat information;
  if (fstat(file, &information) == 0 && S_ISREG(information.st_mode))
    return file;
  ::close(file);
  errno = EEXIST;
  return -1;
}
int file_operations::open_existing(const char *path) { return ::open(path, O_RDONLY | O_CLOEXEC); }
ssize_t file_operations::write(int file, const void *data, size_t size) {
  return ::write(file, data, size);
}
ssize_t file_operations::write_at(int file, const void *data, size_t size, int64_t offset) {
  return ::pwrite(file, data, size, offset);
}
// CIFS, gocryptfs and others sync no folders: their entries are durable whenever they see fit.
int file_operations::sync(int file) {
  const int result = noted(::fsync(file));
  struct stat information;
  if (result == 0 || !is_not_offered(errno) || fstat(file, &information) != 0 ||
      !S_ISDIR(information.st_mode))
    return result;
  are_folders_unsynced = true;
  return 0;
}
int file_operations::close(int file) { return ::close(file); }
int file_operations::rename(const char *from, const char *to) { return ::rename(from, to); }
int file_operations::exchange(const char *from, const char *to) {
  return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
}
int file_operations::make_directory(const char *path) { return ::mkdir(path, 0777); }
int file_operations::remove_file(const char *path) { return noted(::unlink(path)); }
int file_operations::remove_directory(const char *path) { return noted(::rmdir(path)); }
int file_operations::lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB); }

// NFS says EBADF where it would need a file that is open for writing.
bool file_operations::lacks_locks(int error) { return is_not_offered(error) || error == EBADF; }

// Calls write(bytes, size, written so far) until all is written.
template <typename Write>
static int write_pieces(const void *data, size_t size, const Write &write) {
  for (size_t done = 0; done < size;) {
    ssize_t written = write(static_cast<const char *>(data) + done, size - done, done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      errno = written == 0 ? ENOSPC : errno;
      return -1;
    }
    note_work();
    done += static_cast<size_t>(written);
  }
  return 0;
}

int file_operations::write_all(int file, const void *data, size_t size) {
  return write_pieces(data, size, [&](const void *bytes, size_t count, size_t) {
    return write(file, bytes, count);
  });
}

int file_operations::write_all_at(int file, const void *data, size_t size, int64_t offset) {
  return write_pieces(data, size, [&](const void *bytes, size_t count, size_t done) {
    return write_at(file, bytes, count, offset + static_cast<int64_t>(done));
  });
}

int file_operations::sync_path(const char *path) {
  int file = open_existing(path);
  if (file < 0)
    return -1;
  int result = sync(file);
  int reason = errno;
  if (close(file) < 0 && result == 0)
    return -1;
  errno = reason;
  return result;
}

int file_operations::make_directories(const std::string &path, std::vector<std::string> &made) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<fs::path> missing;
  fs::path at = fs::absolute(path, ignored).lexically_normal();
  if (!at.has_filename()) // "folder/"
    at = at.parent_path();
  for (; !fs::exists(at, ignored) && at.has_relative_path(); at = at.parent_path())
    missing.push_back(at);
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    if (make_directory(folder->c_str()) == 0)
      made.push_back(*folder);
    else if (errno != EEXIST) // another process made it meanwhile
      return -1;
    if (sync_path(folder->parent_path().c_str()) != 0)
      return -1;
  }
  if (fs::is_directory(path, ignored))
    return 0;
  errno = ENOTDIR;
  return -1;
}

int file_operations::remove_tree(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found)
    return 0;
  if (status.type() != fs::file_type::directory)
    return remove_file(path.c_str());
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(path, error); !error && entry != fs::end(entry);
       entry.increment(error))
    names.push_back(entry->path());
  if (error) {
    errno = error.value();
    return -1;
  }
  for (const std::string &name : names)
    if (remove_tree(name) != 0)
      return -1;
  return remove_directory(path.c_str());
}

file_operations &real_file_operations() {
  static file_operations operations;
  return operations;
}

bool exists(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string existing_part(const std::string &path) {
  std::error_code ignored;
  std::filesystem::path at = std::filesystem::absolute(path, ignored).lexically_normal();
  while (!exists(at.string()) && at.has_relative_path())
    at = at.parent_path();
  return at;
}

std::optional<int64_t> available_bytes(const std::string &path) {
  struct statvfs disk;
  if (statvfs(path.c_str(), &disk) != 0)
    return std::nullopt;
  return static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
}

std::optional<int64_t> available_files(const std::string &path) {
  struct statvfs disk;
  if (statvfs(path.c_str(), &disk) != 0 || disk.f_files == 0) // some make them as they are needed
    return std::nullopt;
  return static_cast<int64_t>(disk.f_favail);
}

std::optional<int64_t> file_size_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

// To what the system allows; false where it is there already.
static bool raise_file_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
    return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

input_file::input_file(const std::string &path, int failure_code)
    : path_(path), failure_code_(failure_code) {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK; // a pipe would wait for a writer
  file_ = ::open(path.c_str(), flags);
  if (file_ < 0 && errno == EMFILE && raise_file_limit()) // data may lie in thousands of files
    file_ = ::open(path.c_str(), flags);
  if (file_ < 0)
    refuse(std::string("cannot be read: ") + strerror(errno));
  struct stat information;
  if (fstat(file_, &information) != 0 || !S_ISREG(information.st_mode)) {
    ::close(file_);
    const mode_t mode = information.st_mode;
    const char *kind = S_ISDIR(mode)    ? "folder"
                       : S_ISFIFO(mode) ? "pipe"
                       : S_ISSOCK(mode) ? "socket"
                                        : "device";
    refuse(std::string("cannot be read: not a regular file but a ") + kind);
  }
  size_ = information.st_size;
}

input_file::~input_file() { ::close(file_); }

void input_file::read(int64_t offset, void *target, int64_t size) const {
  auto bytes = static_cast<char *>(target);
  while (size > 0) {
    ssize_t got = ::pread(file_, bytes, static_cast<size_t>(size), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      refuse(format_text("%lld bytes expected at offset %lld, but %s", static_cast<long long>(size),
                         static_cast<long long>(offset),
                         got == 0 ? "the file ends there" : strerror(errno)));
    note_work();
    bytes += got;
    offset += got;
    size -= got;
  }
}

void input_file::refuse(const std::string &why) const {
  throw failure(static_cast<exit_code>(failure_code_), path_ + ": " + why);
}

std::string input_file::whole_text() const {
  std::string text(static_cast<size_t>(size_), '\0');
  read(0, text.data(), size_);
  return text;
}

} // namespace trainc
