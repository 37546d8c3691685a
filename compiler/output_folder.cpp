// SPDX-License-Identifier: Apache-2.0
//
// The output folder, complete or untouched.
#include "compiler/output_folder.h"
#include "llvm/Support/FileSystem.h"
#include <csignal>
#include <filesystem>
#include <mutex>
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

OutputFolder::~OutputFolder() {
  if (partial.empty())
    return;
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  removeOnInterrupt("");
}

LogicalResult OutputFolder::begin(Report &report) {
  std::error_code error;
  if (fs::exists(target, error) && !fs::is_directory(target, error))
    return report.error(ExitCode::outputNotWritten, target, "exists and is not a folder",
                        "another folder with -o");
  std::string path = target;
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  path += ".partial-" + std::to_string(getpid());
  removeOnInterrupt(path);
  fs::create_directories(path, error);
  if (error)
    return report.error(ExitCode::outputNotWritten, path,
                        Twine("cannot create the folder: ") + error.message());
  partial = path;
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
  std::string previous = partial + ".previous";
  for (const fs::directory_entry &made : fs::directory_iterator(partial, error)) {
    fs::path place = fs::path(target) / made.path().filename();
    if (fs::exists(place, error))
      fs::rename(place, previous, error);
    if (!error)
      fs::rename(made.path(), place, error);
    if (error)
      return report.error(ExitCode::outputNotWritten, place.string(), error.message());
    fs::remove_all(previous, error);
  }
  fs::remove_all(partial, error);
  partial.clear();
  removeOnInterrupt("");
  return success();
}

} // namespace trainc
