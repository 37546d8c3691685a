// SPDX-License-Identifier: Apache-2.0
//
// A disk that fails at a call, or that writes down what it is asked for.
#pragma once

#include "runtime/files/file_operations.h"

#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace trainc {

// Makes call number `failing` fail; a killed process makes no call after it.
class faulty_operations : public file_operations {
public:
  int calls = 0, failing = -1, error = EIO;
  bool killed = false;
  bool can_exchange = true; // not every file system can

  int create(const char *path) override { return fails() ? -1 : file_operations::create(path); }
  int open_existing(const char *path) override {
    return fails() ? -1 : file_operations::open_existing(path);
  }
  ssize_t write(int file, const void *data, size_t size) override {
    if (!fails())
      return file_operations::write(file, data, size);
    if (error == EINTR)
      return -1;
    file_operations::write(file, data, size / 2); // part of it gets through
    errno = error;
    return -1;
  }
  int sync(int) override { return fails() ? -1 : 0; } // the disk would take its time
  int close(int file) override {
    int result = file_operations::close(file); // no descriptor may leak
    return fails() ? -1 : result;
  }
  int rename(const char *from, const char *to) override {
    return fails() ? -1 : file_operations::rename(from, to);
  }
  int exchange(const char *from, const char *to) override {
    if (fails())
      return -1;
    errno = EINVAL;
    return can_exchange ? file_operations::exchange(from, to) : -1;
  }
  int make_directory(const char *path) override {
    return fails() ? -1 : file_operations::make_directory(path);
  }
  int remove_file(const char *path) override {
    return fails() ? -1 : file_operations::remove_file(path);
  }
  int remove_directory(const char *path) override {
    return fails() ? -1 : file_operations::remove_directory(path);
  }

private:
  bool fails() {
    int call = calls++;
    if (failing < 0 || call < failing || (call > failing && !killed))
      return false;
    errno = error;
    return true;
  }
};

// Writes down every call, with the last names of its paths.
class recording_operations : public file_operations {
public:
  std::vector<std::string> calls;

  int create(const char *path) override {
    return opened("create", path, file_operations::create(path));
  }
  int open_existing(const char *path) override {
    return opened("open", path, file_operations::open_existing(path));
  }
  ssize_t write(int file, const void *data, size_t size) override {
    if (calls.empty() || calls.back() != "write " + names_[file])
      calls.push_back("write " + names_[file]);
    return file_operations::write(file, data, size);
  }
  int sync(int file) override {
    calls.push_back("fsync " + names_[file]);
    return file_operations::sync(file);
  }
  int close(int file) override {
    calls.push_back("close " + names_[file]);
    return file_operations::close(file);
  }
  int rename(const char *from, const char *to) override {
    calls.push_back("rename " + last(from) + " " + last(to));
    return file_operations::rename(from, to);
  }
  int exchange(const char *from, const char *to) override {
    calls.push_back("exchange " + last(from) + " " + last(to));
    return file_operations::exchange(from, to);
  }
  int make_directory(const char *path) override {
    calls.push_back("mkdir " + last(path));
    return file_operations::make_directory(path);
  }
  int remove_file(const char *path) override {
    return removed("unlink", path, file_operations::remove_file(path));
  }
  int remove_directory(const char *path) override {
    return removed("rmdir", path, file_operations::remove_directory(path));
  }

private:
  int removed(const char *what, const char *path, int result) {
    if (result == 0) // else there was nothing
      calls.push_back(std::string(what) + " " + last(path));
    return result;
  }
  static std::string last(const std::string &path) {
    return std::filesystem::path(path).filename();
  }
  int opened(const char *what, const char *path, int file) {
    std::string name = last(path);
    names_[file] = name;
    calls.push_back(std::string(what) + " " + name);
    return file;
  }
  std::map<int, std::string> names_;
};

} // namespace trainc
