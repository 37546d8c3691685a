// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/run_folder.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/failure.h"
#include "runtime/files/file_operations.h"
#include "runtime/files/output_file.h"
#include "runtime/files/run_files.h"
#include "runtime/observe/event_file.h"
#include "runtime/run/run_choice.h"
#include "runtime/run/sample_folder.h"
#include "runtime/run/step_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace trainc {
namespace {

namespace fs = std::filesystem;

// Where somebody's run or checkpoint is; not the beginning of one.
bool is_run(const std::string &folder) {
  return is_configuration_of_run(configuration_of(folder)) || exists(saved_of(folder)) ||
         has_checkpoints(checkpoints_of(folder));
}

// A run in the folder of another, which would take the one's checkpoints for its own and remove
// them, is refused.
void check_place(const std::string &path) {
  auto refuse = [&](const std::string &why) {
    throw failure(exit_usage, path + ": " + why + "\n  try: --run DIR outside of it");
  };
  std::error_code ignored;
  const std::string real = fs::weakly_canonical(path, ignored);
  for (const std::string &way : {whole_path(path), real}) // there may be links on the way
    for (fs::path at = way; at.has_relative_path(); at = at.parent_path()) {
      const std::string name = at;
      if (is_checkpoint(name))
        refuse(name == way ? "is a checkpoint" : "lies in what is a checkpoint, " + name);
      const fs::path inside = fs::path(way).lexically_relative(checkpoints_of(name));
      const bool is_kept = !inside.empty() && *inside.begin() != ".."; // with its checkpoints
      const bool goes_on = is_configuration_of_run(configuration_of(path)) && !is_kept;
      if (name != way && is_run(name) && !goes_on)
        refuse("lies in the folder of another run, " + name);
    }
  if (has_checkpoints(path))
    refuse("holds checkpoints of another run");
  for (const auto &[folder, what] :
       {std::pair(checkpoints_of(path), "checkpoints"), std::pair(samples_of(path), "samples"),
        std::pair(events_of(path), "event files")})
    if (const std::string other = fs::weakly_canonical(folder, ignored).parent_path();
        other != real && is_run(other))
      refuse(std::string("its folder of ") + what + " is a link to that of another run, " + other);
  for (fs::path at = real; at.has_relative_path(); at = at.parent_path()) // a checkpoint to be
    if (is_checkpoint_name(at.filename()) && has_checkpoints(at.parent_path()))
      refuse("has a name that checkpoints have, beside those of another run");
}

// What stands in the place of a file of the run, and is none, is neither waited for nor replaced.
[[noreturn]] void refuse_kind(const std::string &name, const char *what) {
  throw failure(exit_disk, name + ": is not a " + what +
                               ", and a run has one there\n  try: to move it away, or another "
                               "--run DIR");
}

[[noreturn]] void refuse_second(const std::string &path) {
  throw folder_in_use(exit_usage, path + ": another run is going on there\n  try: to wait until it "
                                         "has ended, or another --run DIR beside it");
}

void check_kinds(const std::string &path) {
  std::error_code ignored;
  for (const run_file &file : run_files)
    if (const std::string name = path + "/" + file.name; !file.is_folder)
      if (const fs::file_status own = fs::symlink_status(name, ignored);
          fs::exists(own) && !fs::is_regular_file(own))
        refuse_kind(name, fs::is_symlink(own) ? "file of its own: it is a link" : "regular file");
  check_folder_of_run(checkpoints_of(path));
}

// Of what a run puts beside what somebody else may have put there.
bool is_of_checkpoints(const std::string &name) {
  for (const char *prefix : {"", temporary_prefix, removed_prefix})
    if (name.rfind(std::string(prefix) + "step-", 0) == 0)
      return true;
  return false;
}

// What a run leaves besides samples of text. The configuration first: what is left of the rest is
// no run.
std::vector<std::string> left_by_run(const std::string &folder) {
  std::vector<std::string> all = {configuration_of(folder), saved_of(folder)};
  for (const std::vector<std::string> &files :
       {files_of_log(log_of(folder)), event_files_in(events_of(folder))})
    all.insert(all.end(), files.begin(), files.end());
  std::error_code unread, none;
  for (const auto &[below, is_of] : {std::pair(statistics_of(folder), &is_of_statistics),
                                     std::pair(traces_of(folder), &is_trace)})
    for (auto &entry : fs::directory_iterator(below, none))
      if (is_of(entry.path().filename().native()) &&
          fs::is_regular_file(entry.symlink_status(none)))
        all.push_back(entry.path());
  for (auto &entry : fs::directory_iterator(checkpoints_of(folder), unread))
    if (is_of_checkpoints(entry.path().filename()))
      all.push_back(entry.path());
  if (unread && unread != std::errc::no_such_file_or_directory &&
      unread != std::errc::not_a_directory)
    throw failure(exit_disk, checkpoints_of(folder) + ": cannot be read: " + unread.message() +
                                 "\n  try: another --run DIR");
  return all;
}

// Half a run that is given up would be neither the old one nor the new.
void check_removable(const std::vector<std::string> &paths) {
  auto check = [](const std::string &path, const std::string &folder) {
    if (access(folder.c_str(), W_OK | X_OK) != 0)
      throw failure(exit_disk, path +
                                   ": belongs to the run that would be given up, and cannot be "
                                   "removed: " +
                                   strerror(errno) + "\n  try: another --run DIR");
  };
  for (const std::string &path : paths) {
    if (!exists(path))
      continue;
    check(path, fs::path(path).parent_path());
    if (fs::is_directory(path) && !fs::is_symlink(path))
      check(path, path);
  }
}

} // namespace

void check_run_folder(const std::string &path, bool takes_over) {
  check_place(path);
  check_kinds(path);
  if (!takes_over && holds_run(path) && !exists(configuration_of(path)))
    throw failure(exit_usage, without_configuration(path) + ", or --overwrite to give it up");
  if (!takes_over && holds_run(path))
    throw failure(exit_usage, path + ": holds another run\n  try: --resume latest to go on with "
                                     "it, another --run DIR, or --overwrite to give it up");
  if (const std::string file = configuration_of(path); !takes_over && exists(file))
    if (!read_configuration(file).is_of_run)
      throw failure(exit_usage, file + ": is not what a run wrote, and would be replaced\n  try: "
                                       "another --run DIR, or --overwrite");
  const std::string there = existing_part(path);
  if (access((there + "/.").c_str(), W_OK | X_OK) != 0) // `.`: a file is not a folder
    throw failure(exit_disk, path + ": the folder of the run cannot be made or written: " + there +
                                 ": " + strerror(errno) + "\n  try: --run DIR");
}

run_folder::run_folder(std::string path, bool takes_over, file_operations &files)
    : path_(std::move(path)), lock_path_(lock_of(path_)),
      configuration_path_(configuration_of(path_)), saved_(saved_of(path_)), files_(files) {
  try {
    check_place(path_);
    check_kinds(path_);
    if (files_.make_directories(path_, made_) != 0)
      throw failure(exit_disk, path_ + ": the folder of the run cannot be made: " +
                                   strerror(errno) + "\n  try: --run DIR");
    lock();
    check_run_folder(path_, takes_over);
  } catch (...) {
    leave();
    throw;
  }
}

void run_folder::lock() {
  auto refuse = [&](const char *what) {
    throw failure(exit_disk, path_ + ": " + what + ": " + strerror(errno) + "\n  try: --run DIR");
  };
  constexpr int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  lock_ = ::open(lock_path_.c_str(), flags | O_EXCL, 0666);
  is_lock_made_ = lock_ >= 0;
  if (lock_ < 0 && errno == EEXIST)
    lock_ = ::open(lock_path_.c_str(), flags, 0666);
  if (lock_ < 0)
    refuse("cannot be written");
  int result = files_.lock(lock_);
  if (result != 0 && file_operations::lacks_locks(errno)) {
    is_lockable_ = false; // Lustre and NFS without their lock services: the run goes on unguarded
    result = 0;
  }
  if (result != 0 && errno != EWOULDBLOCK)
    refuse("cannot be locked");
  struct stat information; // a run that did not begin may have removed it meanwhile
  if (result != 0 || fstat(lock_, &information) != 0 || information.st_nlink == 0)
    refuse_second(path_);
  is_locked_ = true;
  if (folder_ < 0)
    folder_ = ::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0)
    refuse("cannot be opened");
}

// Of a run that did not begin nothing stays: what the constructor made, while nobody has put
// anything else there. Of two that begin at once the one without the lock leaves all to the other.
void run_folder::leave() {
  std::error_code ignored;
  if (lock_ >= 0 && !is_locked_)
    made_.clear();
  if (!made_.empty() && is_locked_) {
    fs::remove(checkpoints_of(path_), ignored);
    fs::remove(samples_of(path_), ignored);
    if (fs::file_size(log_of(path_), ignored) == 0)
      fs::remove(log_of(path_), ignored);
  }
  if (is_lock_made_ && is_locked_)
    fs::remove(lock_path_, ignored);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
    fs::remove(*folder, ignored); // where it is empty
  for (const int file : {lock_, folder_})
    if (file >= 0)
      ::close(file);
}

void run_folder::begin_samples(int64_t last, bool writes) {
  sample_folder samples(path_, files_);
  if ((writes && samples.make() != 0) || samples.remove_behind(last) != 0)
    throw failure(exit_disk, samples.path() + ": cannot be written: " + strerror(errno));
}

void check_given_up(const std::string &folder, const std::vector<input_file_name> &needed) {
  std::vector<std::string> removed = left_by_run(folder);
  check_removable(removed);
  removed.push_back(samples_of(folder));
  removed.erase(std::remove_if(removed.begin(), removed.end(),
                               [](const std::string &path) { return !exists(path); }),
                removed.end());
  if (removed.empty())
    return;
  std::error_code ignored;
  for (const input_file_name &file : needed)
    for (fs::path at = fs::weakly_canonical(file.path, ignored); at.has_relative_path();
         at = at.parent_path())
      for (const std::string &path : removed)
        if (fs::equivalent(at, path, ignored))
          throw failure(exit_usage, file.path + ": is what " + file.named_by +
                                        " names, and belongs to the run that would be given up, " +
                                        folder +
                                        "\n  try: a copy of it elsewhere, or another --run DIR");
}

void check_folder_of_run(const std::string &path) {
  std::error_code ignored;
  if (exists(path) && !fs::is_directory(path, ignored))
    refuse_kind(path, "folder");
}

void run_folder::clear() {
  const std::vector<std::string> all = left_by_run(path_);
  auto refuse = [](const std::string &path) {
    throw failure(exit_disk,
                  path + ": cannot be removed: " + strerror(errno) + "\n  try: --run DIR");
  };
  for (const std::string &path : all)
    if (files_.remove_tree(path) != 0)
      refuse(path);
  sample_folder samples(path_, files_);
  if (samples.remove_behind(-1) != 0)
    refuse(samples.path());
}

run_folder::~run_folder() { leave(); }

// A file system that does not answer is not taken for a folder that is gone.
bool run_folder::is_there() const {
  struct stat named, own;
  if (stat(path_.c_str(), &named) != 0)
    return errno != ENOENT && errno != ENOTDIR;
  return fstat(folder_, &own) != 0 || (named.st_dev == own.st_dev && named.st_ino == own.st_ino);
}

void run_folder::note_saved() {
  if (is_noted_)
    return;
  const int file = files_.create(saved_.c_str());
  is_noted_ = file >= 0 && files_.close(file) == 0 && files_.sync_path(path_.c_str()) == 0;
}

void run_folder::write_configuration(const std::string &text) {
  configuration_ = text;
  publish_configuration();
  made_.clear(); // it holds a run from here on
  is_lock_made_ = false;
}

std::string run_folder::bring_back() {
  auto is_gone = [](const std::string &path) {
    return access(path.c_str(), F_OK) != 0 && errno == ENOENT;
  };
  // Without allocating where all is there: it is asked in the midst of steps. The lock first: the
  // rest is this run's only while it has that.
  if (is_gone(lock_path_)) {
    lock_again();
    return lock_path_;
  }
  if (!has_lock())
    refuse_second(path_);
  if (!configuration_.empty() && is_gone(configuration_path_)) {
    publish_configuration();
    return configuration_path_;
  }
  if (is_noted_ && is_gone(saved_)) {
    is_noted_ = false;
    note_saved();
    return is_noted_ ? saved_ : "";
  }
  return "";
}

// Whether the file of that name is the one that is locked.
bool run_folder::has_lock() const {
  struct stat named, own;
  return stat(lock_path_.c_str(), &named) != 0 || fstat(lock_, &own) != 0 ||
         (named.st_dev == own.st_dev && named.st_ino == own.st_ino);
}

void run_folder::lock_again() {
  const int old = lock_; // stays where there is no other
  try {
    lock();
  } catch (...) {
    if (lock_ >= 0)
      ::close(lock_);
    lock_ = old;
    is_lock_made_ = false; // it may be somebody else's by now
    throw;
  }
  is_lock_made_ = false; // the run has begun
  ::close(old);
}

void run_folder::publish_configuration() const {
  replace_file(configuration_path_, configuration_, files_);
}

} // namespace trainc
