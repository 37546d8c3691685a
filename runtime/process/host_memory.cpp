// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/host_memory.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <malloc.h>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace trainc {
namespace {

// What the two versions call it.
struct group_files {
  const char *limit, *usage, *droppable;
};
constexpr group_files version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file"};
constexpr group_files version_2 = {"memory.max", "memory.current", "inactive_file"};

int64_t machine_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (int64_t kilobytes; file >> name;)
    if (name == "MemAvailable:" && file >> kilobytes)
      return kilobytes * 1024;
  return INT64_MAX;
}

// Nothing for "max", or where there is no such file.
int64_t number_in(const std::string &path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t number;
  return file >> number ? number : otherwise;
}

int64_t droppable_in(const std::string &path, const std::string &name) {
  std::ifstream file(path);
  std::string word;
  for (int64_t number; file >> word >> number;)
    if (word == name)
      return number;
  return 0;
}

// Of the group and its parents.
int64_t available_up_from(const std::string &root, std::string group, const group_files &files) {
  int64_t least = INT64_MAX;
  while (true) {
    std::string folder = root + group + "/";
    int64_t limit = number_in(folder + files.limit, INT64_MAX);
    if (limit < INT64_MAX) {
      int64_t usage = number_in(folder + files.usage, 0) -
                      droppable_in(folder + "memory.stat", files.droppable);
      least = std::min(least, std::max<int64_t>(limit - std::max<int64_t>(usage, 0), 0));
    }
    size_t slash = group.rfind('/');
    if (slash == std::string::npos)
      return least;
    group.resize(slash);
  }
}

// The text of a small file; no stream: a run allocates nothing in its steps.
template <size_t size> void read_text(const char *path, char (&text)[size]) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
  if (file >= 0)
    close(file);
  text[std::max<ssize_t>(length, 0)] = 0;
}

} // namespace

int64_t available_in_groups(const std::string &groups, const std::string &root) {
  int64_t least = INT64_MAX;
  std::istringstream lines(groups);
  // number:controllers:/path; the one of version 2 has no controllers
  for (std::string line; std::getline(lines, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/")
      path.clear();
    if (controllers == ",,")
      least = std::min(least, available_up_from(root, path, version_2));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, available_up_from(root + "/memory", path, version_1));
  }
  return least;
}

int64_t available_memory() {
  std::ifstream file("/proc/self/cgroup");
  std::string groups((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return std::min(machine_memory(), available_in_groups(groups, "/sys/fs/cgroup"));
}

int64_t resident_bytes() {
  char pages[256]; // all of the process, then those in memory, ...
  read_text("/proc/self/statm", pages);
  const char *resident = std::strchr(pages, ' ');
  return resident ? std::strtoll(resident, nullptr, 10) * sysconf(_SC_PAGESIZE) : 0;
}

int64_t peak_resident_bytes() {
  char status[8192];
  read_text("/proc/self/status", status);
  if (const char *line = std::strstr(status, "\nVmHWM:"))
    return std::strtoll(line + std::strlen("\nVmHWM:"), nullptr, 10) * 1024;
  rusage usage; // without /proc: counts what the process held before it became this program, too
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20); // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

} // namespace trainc
