// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/event_file.h"

#include "runtime/failure.h"
#include "runtime/files/run_files.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <unistd.h>

namespace trainc {
namespace {

namespace fs = std::filesystem;

// events.out.tfevents.1700000000.trainc: TensorBoard wants `tfevents` in the name and reads files
// in the order of their names.
constexpr const char *name_end = ".trainc";

std::string name_of(int64_t number) {
  return format_text("%s%010" PRId64 "%s", event_file_prefix, number, name_end);
}

// -1: it is not the name of such a file.
int64_t number_of(const std::string &name) {
  const size_t digits = strlen(event_file_prefix);
  if (name.size() <= digits)
    return -1;
  const int64_t number = strtoll(name.c_str() + digits, nullptr, 10);
  return number >= 0 && name == name_of(number) ? number : -1;
}

[[noreturn]] void refuse(const std::string &path, const char *what) {
  throw failure(exit_disk, path + ": " + what + ": " + strerror(errno));
}

// Reads a file a record at a time.
class record_reader {
public:
  explicit record_reader(const std::string &path) : file_(path, exit_disk) {}

  // False at the end, and where the next record is damaged.
  bool next(event_head &found);
  int64_t end() const { return end_; } // of the last record
  int64_t size() const { return file_.size(); }

private:
  std::string_view view(int64_t offset, int64_t bytes);

  input_file file_;
  int64_t end_ = 0, read_begin_ = 0;
  std::string read_; // of the file, from read_begin_ on
};

// Bytes of the file; empty where it ends before them.
std::string_view record_reader::view(int64_t offset, int64_t bytes) {
  constexpr int64_t at_once = 1 << 20;
  if (bytes > file_.size() - offset)
    return {};
  if (offset + bytes > read_begin_ + static_cast<int64_t>(read_.size())) {
    read_begin_ = offset;
    read_.resize(static_cast<size_t>(std::min(std::max(bytes, at_once), file_.size() - offset)));
    file_.read(offset, read_.data(), static_cast<int64_t>(read_.size()));
  }
  return std::string_view(read_).substr(static_cast<size_t>(offset - read_begin_),
                                        static_cast<size_t>(bytes));
}

bool record_reader::next(event_head &found) {
  constexpr int64_t head_bytes = record_head_bytes, tail_bytes = record_tail_bytes;
  const std::string_view head = view(end_, head_bytes);
  const int64_t event = head.empty() ? -1 : event_bytes(head);
  if (event < 0)
    return false;
  const std::string_view rest = view(end_ + head_bytes, event + tail_bytes);
  if (rest.empty() || !read_event(rest, found))
    return false;
  end_ += head_bytes + event + tail_bytes;
  return true;
}

// What of a file stays.
struct kept_part {
  int64_t bytes = 0, of = 0;
  bool has_values = false;
  std::vector<std::string> tags; // of the last step's records
};

kept_part part_to(const std::string &path, int64_t step) {
  record_reader records(path);
  kept_part kept;
  kept.of = records.size();
  for (event_head head; records.next(head);) {
    if (head.has_values && head.step > step)
      break;
    kept.bytes = records.end();
    kept.has_values |= head.has_values;
    if (head.has_values && head.step == step)
      kept.tags.emplace_back(head.tag());
  }
  return kept;
}

} // namespace

std::vector<std::string> event_files_in(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code none; // there may be no such folder
  for (auto &entry : fs::directory_iterator(folder, none))
    if (number_of(entry.path().filename()) >= 0 && fs::is_regular_file(entry.symlink_status(none)))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> cut_events(const std::string &folder, int64_t step,
                                    file_operations &files) {
  std::vector<std::string> tags;
  for (const std::string &path : event_files_in(folder)) {
    const kept_part kept = step < 0 ? kept_part() : part_to(path, step);
    tags.insert(tags.end(), kept.tags.begin(), kept.tags.end());
    if (!kept.has_values && files.remove_file(path.c_str()) != 0)
      refuse(path, "cannot be removed");
    if (kept.has_values && kept.bytes < kept.of && ::truncate(path.c_str(), kept.bytes) != 0)
      refuse(path, "cannot be cut");
  }
  return tags;
}

event_file::event_file(const std::string &folder, size_t largest, file_operations &files)
    : record_(largest) {
  std::vector<std::string> made;
  if (files.make_directories(folder, made) != 0)
    refuse(folder, "cannot be made");
  auto number = static_cast<int64_t>(wall_seconds());
  if (const auto before = event_files_in(folder); !before.empty()) // a clock may have been put back
    number = std::max(number, number_of(fs::path(before.back()).filename()) + 1);
  path_ = folder + "/" + name_of(number);
  if (file_.open(path_, /*keeps=*/false) != 0 || files.sync_path(folder.c_str()) != 0)
    refuse(path_, "cannot be written");
  record_.begin_file(wall_seconds());
  write();
}

void event_file::write() {
  const std::string_view bytes = record_.finish();
  file_.append(bytes.data(), bytes.size());
}

double wall_seconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

} // namespace trainc
