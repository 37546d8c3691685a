// SPDX-License-Identifier: Apache-2.0
//
// Files go from host to host by the ranks' messages, in blocks, and a checkpoint gets its name once
// its checksums agree.
#include "runtime/run/host_folders.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/files/output_file.h"
#include "runtime/files/run_files.h"
#include "runtime/options/run_configuration.h"
#include "runtime/process/signs_of_life.h"
#include "runtime/run/run_choice.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace trainc {
namespace {

// What a host knows of the run.
struct host_run {
  std::string host, id, started, text; // of its configuration; no text: it has none
};

host_run run_on_this_host(const std::string &folder) {
  const std::string path = configuration_of(folder);
  if (!is_configuration_of_run(path))
    return {host_name(), "", "", ""};
  const run_configuration read = read_configuration(path);
  return {host_name(), read.id, read.last_start, read.text};
}

// Of each host, by its first rank.
std::vector<host_run> runs_of_hosts(communicator &ranks, const std::vector<int> &hosts,
                                    const host_run &own) {
  std::vector<host_run> all;
  all.reserve(hosts.size());
  for (int first : hosts)
    all.push_back({ranks.broadcast(own.host, first), ranks.broadcast(own.id, first),
                   ranks.broadcast(own.started, first), ranks.broadcast(own.text, first)});
  return all;
}

void refuse_different_runs(const std::string &folder, const std::vector<host_run> &hosts) {
  const host_run *first = nullptr;
  for (const host_run &each : hosts) {
    if (each.text.empty())
      continue;
    first = first ? first : &each;
    if (each.id != first->id)
      throw failure(exit_usage, folder + ": is another run on " + each.host + " (" + each.id +
                                    ") than on " + first->host + " (" + first->id +
                                    ")\n  try: removing or renaming the old one there, or another "
                                    "--run DIR");
  }
}

// Of the last start; of several hosts of that the first.
const host_run *latest_of(const std::vector<host_run> &hosts) {
  const host_run *latest = nullptr;
  for (const host_run &each : hosts)
    if (!each.text.empty() && (!latest || each.started > latest->started))
      latest = &each;
  return latest;
}

} // namespace

shared_configuration::shared_configuration(communicator &ranks, const program &program,
                                           trainer_options &options) {
  const std::vector<int> hosts = first_ranks_of_hosts(ranks);
  if (hosts.size() == 1 || (options.resume != "latest" && options.resume != "auto"))
    return;
  std::string folder = options.run;
  if (folder.empty()) {
    for (int first : hosts)
      folder = std::max(folder, ranks.broadcast(newest_run(program), first));
    options.run = folder; // empty where no host has a run
  }
  if (folder.empty())
    return;
  host_run own;
  ranks.together([&] { own = run_on_this_host(folder); });
  const std::vector<host_run> all = runs_of_hosts(ranks, hosts, own);
  ranks.together([&] {
    if (ranks.rank() == 0)
      refuse_different_runs(folder, all);
  });
  const host_run *latest = latest_of(all);
  if (!latest)
    return;
  ranks.together([&] {
    if (own.text == latest->text)
      return;
    copy_ = std::filesystem::temp_directory_path().string() +
            format_text("/trainc-configuration-%d.json", getpid());
    replace_file(copy_, latest->text);
    options.configuration_of_host = copy_;
  });
  for (const host_run &each : all)
    if (each.text.empty() && ranks.rank() == 0)
      fprintf(stderr, "warning: %s: is not there on %s, which gets the run of %s (%s)\n",
              folder.c_str(), each.host.c_str(), latest->host.c_str(), latest->id.c_str());
}

shared_configuration::~shared_configuration() {
  if (!copy_.empty())
    real_file_operations().remove_file(copy_.c_str());
}

namespace {

// Of a rank that keeps a folder: the newest that is whole.
struct whole_newest {
  uint64_t sequence = 0; // 0: there is none
  int64_t step = 0;
  char host[64] = "", written_by[128] = "";

  bool is_of(const whole_newest &other) const {
    return sequence == other.sequence && step == other.step;
  }
};

// The files of a checkpoint, the manifest last.
std::vector<checkpoint_info::file> files_to_send(const checkpoint_info &info) {
  std::vector<checkpoint_info::file> files = info.files;
  files.push_back(
      {"manifest.json", input_file(info.path + "/manifest.json", exit_checkpoint).size(), {}});
  return files;
}

void send_text(communicator &ranks, const std::string &text, int to) {
  const auto length = static_cast<int64_t>(text.size());
  ranks.send(&length, sizeof length, to);
  ranks.send(text.data(), length, to);
}

std::string receive_text(communicator &ranks, int from) {
  int64_t length = 0;
  ranks.receive(&length, sizeof length, from);
  std::string text(static_cast<size_t>(length), '\0');
  ranks.receive(text.data(), length, from);
  return text;
}

// The receiver waits for what was promised: what cannot be read any more is sent as zeros, which
// the checksums tell.
void read_or_clear(const std::string &path, int64_t begin, char *block, int64_t bytes) {
  try {
    input_file(path, exit_checkpoint).read(begin, block, bytes);
  } catch (const failure &) {
    memset(block, 0, static_cast<size_t>(bytes));
  }
}

void send_checkpoint(communicator &ranks, const checkpoint_info &info, int to) {
  const std::vector<checkpoint_info::file> files = files_to_send(info);
  auto count = static_cast<int64_t>(files.size());
  ranks.send(&count, sizeof count, to);
  std::vector<char> block(block_bytes);
  for (const checkpoint_info::file &each : files) {
    send_text(ranks, each.name, to);
    ranks.send(&each.bytes, sizeof each.bytes, to);
    for (int64_t begin = 0; begin < each.bytes; begin += block_bytes) {
      const int64_t bytes = std::min(block_bytes, each.bytes - begin);
      read_or_clear(info.path + "/" + each.name, begin, block.data(), bytes);
      ranks.send(block.data(), bytes, to);
      note_work();
    }
  }
}

// The sender waits for nobody: after an error the rest is received, and the error thrown then.
void receive_checkpoint(communicator &ranks, const std::string &path, int from) {
  file_operations &files = real_file_operations();
  std::vector<std::string> made;
  int error = files.make_directories(path, made) == 0 ? 0 : errno;
  int64_t count = 0;
  ranks.receive(&count, sizeof count, from);
  std::vector<char> block(block_bytes);
  for (; count > 0; --count) {
    const std::string name = path + "/" + receive_text(ranks, from);
    int64_t left = 0;
    ranks.receive(&left, sizeof left, from);
    const int file = error ? -1 : files.create(name.c_str());
    if (file < 0 && !error)
      error = errno;
    for (; left > 0; left -= block_bytes) {
      const int64_t bytes = std::min(block_bytes, left);
      ranks.receive(block.data(), bytes, from);
      if (!error && files.write_all(file, block.data(), static_cast<size_t>(bytes)) != 0)
        error = errno;
      note_work();
    }
    if (file >= 0 && files.sync(file) != 0 && !error)
      error = errno;
    if (file >= 0 && files.close(file) != 0 && !error)
      error = errno;
  }
  if (error)
    throw failure(exit_disk, path + ": a checkpoint of another host cannot be written: " +
                                 strerror(error) + "\n  try: free space, or --run DIR elsewhere");
}

// Whole, in place of a damaged one of that name.
void give_name(const std::string &written, const std::string &path) {
  verify_files(read_manifest(written));
  file_operations &files = real_file_operations();
  const std::string folder = std::filesystem::path(path).parent_path();
  if (files.sync_path(written.c_str()) != 0 || files.remove_tree(path) != 0 ||
      files.rename(written.c_str(), path.c_str()) != 0 || files.sync_path(folder.c_str()) != 0)
    throw failure(exit_disk, path + ": cannot be written: " + strerror(errno));
}

// Of each rank. `own`: of this one.
std::vector<whole_newest> newest_of_folders(communicator &ranks, const folder_groups &groups,
                                            const program &program, const std::string &folder,
                                            const std::function<void(const std::string &)> &warn,
                                            std::optional<checkpoint_info> &own) {
  whole_newest mine;
  ranks.together([&] {
    if (!groups.keeps())
      return;
    own = newest_whole(folder, program, warn);
    if (own) {
      mine = {own->sequence, own->step};
      snprintf(mine.written_by, sizeof mine.written_by, "%s", own->written_by.c_str());
    }
    snprintf(mine.host, sizeof mine.host, "%s", host_name().c_str());
  });
  std::vector<whole_newest> all(static_cast<size_t>(ranks.size()));
  ranks.gather(&mine, sizeof mine, all.data());
  return all;
}

// Two starts have gone on from one checkpoint, each on a host of its own.
void refuse_forks(const std::string &path, const whole_newest &one, const whole_newest &other) {
  if (one.is_of(other) && strcmp(one.written_by, other.written_by) != 0)
    throw failure(exit_checkpoint,
                  path + ": is another on " + one.host + " (of the start " + one.written_by +
                      ") than on " + other.host + " (" + other.written_by +
                      ")\n  try: removing the folder of the run on the host whose steps do not "
                      "count");
}

[[noreturn]] void refuse_to_copy(const communicator &ranks, const std::string &lacks,
                                 const whole_newest &best) {
  const std::string text = lacks +
                           ", and a dry run copies nothing\n  try: the command without --dry-run, "
                           "which copies it from " +
                           best.host;
  throw failure(exit_checkpoint, ranks.rank() > 0 ? "" : text, /*everywhere=*/true);
}

std::string lack_of(const std::string &path, const whole_newest &known) {
  return path + ": is not there, or not whole, on " + known.host +
         (known.sequence > 0 ? format_text(", whose newest is of step %" PRId64, known.step) : "");
}

} // namespace

std::string share_newest_checkpoint(communicator &ranks, const folder_groups &groups,
                                    const program &program, const std::string &folder, bool copies,
                                    const std::function<void(const std::string &)> &warn) {
  std::optional<checkpoint_info> own;
  const std::vector<whole_newest> all =
      newest_of_folders(ranks, groups, program, folder, warn, own);
  const auto best = std::max_element(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return std::pair(a.sequence, a.step) < std::pair(b.sequence, b.step);
  });
  if (best->sequence == 0)
    return "";
  const auto source = static_cast<int>(best - all.begin());
  const std::string name = format_text("step-%08" PRId64, best->step),
                    written = folder + "/" + temporary_prefix + name;
  std::string path = folder + "/" + name;
  for (int keeper : groups.keepers()) {
    const whole_newest &known = all[static_cast<size_t>(keeper)];
    ranks.together([&] { refuse_forks(path, known, *best); });
    if (known.is_of(*best))
      continue;
    const std::string lacks = lack_of(path, known);
    if (!copies)
      refuse_to_copy(ranks, lacks, *best);
    if (ranks.rank() == 0)
      warn(lacks + ", and is copied from " + best->host);
    ranks.together([&] {
      if (ranks.rank() == source)
        send_checkpoint(ranks, *own, keeper);
      if (ranks.rank() != keeper)
        return;
      receive_checkpoint(ranks, written, source);
      give_name(written, path);
    });
  }
  return path;
}

} // namespace trainc
