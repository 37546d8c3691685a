// SPDX-License-Identifier: Apache-2.0
//
// The output folder, complete or untouched.
#include "compiler/output/output_folder.h"
#include "compiler/output/output_exchange.h"
#include "compiler/output/write_file.h"
#include "compiler/process_group.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace llvm;
namespace fs = std::filesystem;

namespace trainc {

namespace {

// What was begun and is to be removed unless it is published: at the end, or by an interrupt. A
// thread waits for the signals, so this is ordinary code and not confined to what a signal handler
// may do; whichever comes first does it, the other waits.
struct Begun {
  std::string partial;
  std::string temporary;
  std::vector<fs::path> parents; // folders made for it, outermost first
};
std::mutex begunMutex;
Begun &begun = *new Begun; // an interrupt may come while the process ends

bool exists(const std::string &path) {
  std::error_code ignored;
  return !path.empty() && fs::exists(path, ignored);
}

// Under the mutex. A host compiler that ends at the same time may still write into a folder.
void removeBegun() {
  std::error_code ignored;
  constexpr int kAttempts = 100;
  for (const std::string &folder : {begun.partial, begun.temporary})
    for (int i = 0; i < kAttempts && exists(folder); ++i) {
      fs::remove_all(folder, ignored);
      if (exists(folder))
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  for (const fs::path &parent : reverse(begun.parents))
    fs::remove(parent, ignored); // an empty one alone
  begun = {};
}

/// The exit code, the two folders, and the parents. A host compiler may still write into a folder.
constexpr const char *kRemoval = R"(exec 2>/dev/null
code=$1 partial=$2 temporary=$3 tries=0
shift 3
until rm -rf -- "$partial" "$temporary" || [ $((tries += 1)) = 100 ]; do sleep 0.01; done
for parent; do rmdir -- "$parent"; done
exit "$code")";

/// Under the mutex. The shell takes this process's place, which ends the other threads: else one
/// that goes on would make again what is removed, or fail for want of it. Returns where there is
/// no shell.
void becomeRemoval(int code) {
  std::vector<std::string> words = {
      "sh", "-c", kRemoval, "trainc", std::to_string(code), begun.partial, begun.temporary};
  for (const fs::path &parent : reverse(begun.parents))
    words.push_back(parent);
  std::vector<char *> arguments(words.size() + 1); // the last is null
  transform(words, arguments.begin(), [](std::string &word) { return word.data(); });
  char path[] = "PATH=/usr/bin:/bin";
  char *environment[] = {path, nullptr};
  execve("/bin/sh", arguments.data(), environment);
}

void waitForInterrupts() {
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
    std::lock_guard lock(begunMutex);
    endProcessGroup();
    becomeRemoval(128 + signal);
    removeBegun();
    _exit(128 + signal);
  }).detach();
}

/// 0, or the error of mkdir.
int makePartialFolder(const std::string &path) {
  std::lock_guard lock(begunMutex);
  if (mkdir(path.c_str(), 0777) != 0)
    return errno;
  begun.partial = path;
  return 0;
}

/// Makes a folder and those above it.
std::error_code makeFolders(const fs::path &folder) {
  std::lock_guard lock(begunMutex);
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path())
    missing.push_back(at);
  begun.parents.insert(begun.parents.end(), missing.rbegin(), missing.rend());
  error.clear();
  fs::create_directories(folder, error);
  return error;
}

} // namespace

namespace {

constexpr unsigned kSuffixDigits = 16;

/// Folders of this name whose process is gone: the kernel has ended its lock. Where there are no
/// locks, all of them stay.
void removeAbandoned(const std::string &prefix) {
  std::error_code error;
  fs::path folder = fs::path(prefix).parent_path();
  std::string name = fs::path(prefix).filename();
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    std::string path = entry.path(), found = entry.path().filename();
    StringRef suffix = found;
    struct stat status;
    if (!suffix.consume_front(name) || suffix.size() != kSuffixDigits ||
        !all_of(suffix, [](char c) { return isHexDigit(c); }) ||
        lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
      continue;
    FolderLock lock;
    if (lock.take(path, /*waits=*/false) == LockState::held)
      fs::remove_all(path, error);
  }
}

std::string randomSuffix() {
  std::random_device device; // the kernel's: process numbers are shared by containers
  uint64_t number = (uint64_t(device()) << 32) | device();
  return utohexstr(number, /*LowerCase=*/true, kSuffixDigits);
}

/// A new folder that is this process's alone, with its lock; the error where there can be none.
std::error_code makeLocked(const std::string &prefix, std::string &path, FolderLock &lock) {
  while (true) {
    path = prefix + randomSuffix();
    const int problem = makePartialFolder(path);
    if (problem == EEXIST)
      continue;
    if (problem != 0)
      return {problem, std::generic_category()};
    // Before it was locked another compilation may have taken it for abandoned.
    LockState state = lock.take(path, /*waits=*/false);
    if (state == LockState::unavailable ? lock.problem() != ENOENT
                                        : state == LockState::held && lock.isStill(path))
      return {};
  }
}

bool mayNotWrite(const std::error_code &error) {
  return error.value() == EACCES || error.value() == EPERM || error.value() == EROFS;
}

/// Where what is being made lies until it can be renamed: beside the target, or within it where
/// that is a link or a mount of its own, such as the volume of a container.
struct PartialPlaces {
  std::string beside, within; // beginnings of names; beside: empty where that is not a place
};

PartialPlaces partialPlaces(StringRef target) {
  std::string path = target.rtrim('/').str();
  PartialPlaces places{path + ".partial-", path + "/.partial-"};
  std::string folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (path.empty() || fs::is_symlink(path, ignored) ||
      !onOneMount(path, folder.empty() ? "." : folder))
    places.beside.clear();
  return places;
}

} // namespace

void letInterruptEnd() {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::lock_guard lock(begunMutex); // an interrupt that removes keeps it to the end
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::string wanted = fs::absolute(temporaryPath("compile"), error);
  std::lock_guard lock(begunMutex);
  if (!error && mkdir(wanted.c_str(), 0700) == 0)
    begun.temporary = folder = wanted;
}

TemporaryFolder::~TemporaryFolder() {
  std::lock_guard lock(begunMutex);
  std::error_code ignored;
  if (!folder.empty())
    fs::remove_all(folder, ignored);
  begun.temporary.clear();
}

// A name that begins with a dash would be an option of the host compiler.
OutputFolder::OutputFolder(std::string path)
    : target(StringRef(path).starts_with("-") ? "./" + path : std::move(path)) {}

OutputFolder::~OutputFolder() {
  std::lock_guard lock(begunMutex);
  removeBegun();
}

LogicalResult OutputFolder::begin(ArrayRef<std::string> inputs, Report &report) {
  for (const std::string &file : inputs)
    if (std::string entry = replacedEntryWith(file, target); !entry.empty())
      return report.error(ExitCode::outputNotWritten, file,
                          "lies in '" + entry + "' of the output folder, which trainc writes",
                          "another folder with -o");
  std::error_code error;
  if (fs::exists(target, error) && !fs::is_directory(target, error))
    return report.error(ExitCode::outputNotWritten, target, "exists and is not a folder",
                        "another folder with -o");
  return makePartial(report);
}

LogicalResult OutputFolder::makePartial(Report &report) {
  waitForInterrupts();
  const PartialPlaces places = partialPlaces(target);
  std::error_code error;
  std::string path = target;
  if (!places.beside.empty()) {
    if (fs::path parent = fs::path(places.beside).parent_path(); !parent.empty())
      error = makeFolders(parent);
    removeAbandoned(places.beside);
    if (!error)
      error = makeLocked(places.beside, path, lock);
  }
  if (places.beside.empty() || (mayNotWrite(error) && fs::is_directory(target))) {
    removeAbandoned(places.within);
    error = makeLocked(places.within, path, lock);
  }
  if (error)
    return report.error(ExitCode::outputNotWritten, target,
                        Twine("cannot create the folder: ") + error.message(),
                        "another folder with -o");
  partial = path;
  report.showAs(partial, target);
  warnOfMissingLocks(lock, report);
  return success();
}

void OutputFolder::warnOfMissingLocks(const FolderLock &lock, Report &report) const {
  if (lock.problem() != 0)
    report.warning(Finding::noLocks, target,
                   Twine(lock.problem() == EACCES
                             ? "it may not be read, so that it cannot be locked ("
                             : "its file system has no locks (") +
                       std::generic_category().message(lock.problem()) +
                       "): compilations into it at once are not kept apart, and what a killed one "
                       "left stays");
}

std::string OutputFolder::entry(StringRef name) const { return partial + "/" + name.str(); }

LogicalResult OutputFolder::makeFolder(StringRef name, Report &report) {
  std::error_code error;
  fs::create_directories(entry(name), error);
  if (error)
    return report.error(ExitCode::outputNotWritten, entry(name), error.message(),
                        "another folder with -o");
  return success();
}

LogicalResult OutputFolder::makeRoomFor(StringRef file, Report &report) {
  std::error_code error;
  if (isWithin(file.str(), target))
    error = makeFolders(target);
  if (error)
    return report.error(ExitCode::outputNotWritten, target, error.message(),
                        "another folder with -o");
  return success();
}

LogicalResult OutputFolder::writeText(StringRef name, StringRef text, Report &report) {
  if (std::error_code error = writeFile(entry(name), text))
    return report.error(ExitCode::outputNotWritten, entry(name), error.message(),
                        "another folder with -o");
  return success();
}

LogicalResult OutputFolder::publish(Report &report) {
  (void)makeFolders(target); // the exchange says why it has none
  FolderLock turn;
  if (turn.take(target, /*waits=*/true) != LockState::held)
    warnOfMissingLocks(turn, report);
  std::lock_guard lock(begunMutex); // an interrupt comes before or after
  if (std::optional<OutputProblem> problem = exchangeOutput(partial, target))
    return report.error(ExitCode::outputNotWritten, problem->path, problem->text, problem->advice);
  begun.parents.clear();
  removeBegun();
  partial.clear();
  return success();
}

} // namespace trainc
