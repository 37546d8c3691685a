// SPDX-License-Identifier: Apache-2.0
//
// The system calls that change or lock files, as an interface: a test makes each of
// them fail in turn and looks at what is left on the disk. Each returns -1 and
// sets errno like the call it is named after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace trainc {

class file_operations {
public:
  virtual ~file_operations() = default;
  // For writing, truncated; EEXIST where something stands there that is not a regular file.
  virtual int create(const char *path);
  virtual int open_existing(const char *path); // a file or a folder, for `sync`
  virtual ssize_t write(int file, const void *data, size_t size);
  virtual ssize_t write_at(int file, const void *data, size_t size, int64_t offset);
  virtual int sync(int file);
  virtual int close(int file);
  virtual int rename(const char *from, const char *to);
  virtual int exchange(const char *from, const char *to); // swaps two existing names
  virtual int make_directory(const char *path);
  virtual int remove_file(const char *path);
  virtual int remove_directory(const char *path);
  virtual int lock(int file); // until it is closed; EWOULDBLOCK where another process has it
  static bool lacks_locks(int error); // what `lock` failed with where there are none

  // Built from the above. Those that write handle short writes and EINTR.
  int write_all(int file, const void *data, size_t size);
  int write_all_at(int file, const void *data, size_t size, int64_t offset);
  int sync_path(const char *path);
  // The folder and those above it that are missing, with names that are durable. What it made is
  // added to `made`, the outermost first, also where it fails later.
  int make_directories(const std::string &path, std::vector<std::string> &made);
  // A file, or a folder with all in it, one name after the other: each is a sign of life. Links are
  // removed, not what they lead to. 0 where there is nothing.
  int remove_tree(const std::string &path);
};

file_operations &real_file_operations();

// Whether all folders were synced that should have been: some file systems offer it for files
// alone.
bool syncs_folders();

// Whether a path leads to something; no where that cannot be told.
bool exists(const std::string &path);

// The path where it exists, else the nearest folder above it that does.
std::string existing_part(const std::string &path);

// Of the file system of an existing path; nothing where it does not say. They allocate nothing.
std::optional<int64_t> available_bytes(const std::string &path);
std::optional<int64_t> available_files(const std::string &path); // inodes

// Bytes that a file may have (`ulimit -f`); nothing: as many as there is room for.
std::optional<int64_t> file_size_limit();

// Reads exactly `size` bytes; throws `failure` with the exit code given when the
// file is shorter or unreadable.
class input_file {
public:
  input_file(const std::string &path, int failure_code);
  ~input_file();
  input_file(const input_file &) = delete;
  input_file &operator=(const input_file &) = delete;
  void read(int64_t offset, void *target, int64_t size) const;
  std::string whole_text() const;
  // Throws such a `failure`: "PATH: why".
  [[noreturn]] void refuse(const std::string &why) const;
  int64_t size() const { return size_; }
  const std::string &path() const { return path_; }
  int descriptor() const { return file_; }

private:
  std::string path_;
  int failure_code_;
  int file_ = -1;
  int64_t size_ = 0;
};

} // namespace trainc
