// SPDX-License-Identifier: Apache-2.0
//
// The output folder, complete or untouched.
#include "compiler/output_folder.h"
#include "compiler/output_exchange.h"
#include "llvm/Support/FileSystem.h"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace llvm;
namespace fs = std::filesystem;

namespace trainc {

namespace {

// What an interrupt has to remove. A thread waits for the signals, so removal
// is ordinary code and not confined to what a signal handler may do.
std::mutex interruptMutex;
std::string interruptRemoves;

void removeOnInterrupt(const std::string &path) {
  std::lock_guard lock(interruptMutex);
  interruptRemoves = path;
  static bool started = false;
  if (started)
    return;
  started = true;
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    std::lock_guard lock(interruptMutex);
    std::error_code ignored;
    if (!interruptRemoves.empty())
      fs::remove_all(interruptRemoves, ignored);
    _exit(128 + signal);
  }).detach();
}

} // namespace

/// Folders of this name whose process is gone: neither a process of this machine has the number
/// nor one of another machine or container the lock.
static void removeAbandoned(const std::string &prefix) {
  std::error_code error;
  fs::path folder = fs::path(prefix).parent_path();
  std::string name = fs::path(prefix).filename();
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    std::string path = entry.path(), number = entry.path().filename();
    struct stat status;
    pid_t process = 0;
    if (!StringRef(number).starts_with(name) ||
        StringRef(number).drop_front(name.size()).getAsInteger(10, process) || process <= 0 ||
        lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != geteuid() || kill(process, 0) == 0 || errno != ESRCH)
      continue;
    int lock = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
      fs::remove_all(path, error);
    if (lock >= 0)
      ::close(lock);
  }
}

/// Where what is being made lies until it can be renamed: beside the target, or within it where
/// that is a link or a file system of its own, such as the volume of a container.
static std::string partialPrefix(StringRef target) {
  std::string path = target.rtrim('/').str();
  if (path.empty()) // the root
    return "/.partial-";
  std::string folder = fs::path(path).parent_path();
  struct stat own, around;
  bool isOwn = lstat(path.c_str(), &own) == 0 &&
               stat(folder.empty() ? "." : folder.c_str(), &around) == 0 &&
               (S_ISLNK(own.st_mode) || own.st_dev != around.st_dev);
  return path + (isOwn ? "/.partial-" : ".partial-");
}

// A name that begins with a dash would be an option of the host compiler.
OutputFolder::OutputFolder(std::string path)
    : target(StringRef(path).starts_with("-") ? "./" + path : std::move(path)) {}

OutputFolder::~OutputFolder() {
  if (lock >= 0)
    ::close(lock);
  if (partial.empty())
    return;
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  removeOnInterrupt("");
}

LogicalResult OutputFolder::begin(ArrayRef<std::string> inputs, Report &report) {
  for (const std::string &file : inputs)
    if (std::string entry = replacedEntryWith(file, target); !entry.empty())
      return report.error(ExitCode::outputNotWritten, file,
                          "lies in '" + entry + "' of the output folder, which is replaced",
                          "another folder with -o");
  std::error_code error;
  if (fs::exists(target, error) && !fs::is_directory(target, error))
    return report.error(ExitCode::outputNotWritten, target, "exists and is not a folder",
                        "another folder with -o");
  std::string path = partialPrefix(target);
  removeAbandoned(path);
  path += std::to_string(getpid());
  removeOnInterrupt(path);
  fs::create_directories(path, error);
  if (error)
    return report.error(ExitCode::outputNotWritten, path,
                        Twine("cannot create the folder: ") + error.message());
  partial = path;
  lock = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0)
    (void)flock(lock, LOCK_EX | LOCK_NB); // a file system without locks: then numbers must do
  return success();
}

std::string OutputFolder::entry(StringRef name) const { return partial + "/" + name.str(); }

LogicalResult OutputFolder::makeFolder(StringRef name, Report &report) {
  std::error_code error;
  fs::create_directories(entry(name), error);
  if (error)
    return report.error(ExitCode::outputNotWritten, entry(name), error.message());
  return success();
}

LogicalResult OutputFolder::writeText(StringRef name, StringRef text, Report &report) {
  std::error_code error;
  raw_fd_ostream stream(entry(name), error);
  if (!error) {
    stream << text;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return report.error(ExitCode::outputNotWritten, entry(name), error.message());
  return success();
}

LogicalResult OutputFolder::publish(Report &report) {
  std::error_code error;
  fs::create_directories(target, error);
  std::string problem = exchangeOutput(partial, target);
  if (!problem.empty())
    return report.error(ExitCode::outputNotWritten, target, problem);
  fs::remove_all(partial, error);
  partial.clear();
  removeOnInterrupt("");
  return success();
}

} // namespace trainc
