// SPDX-License-Identifier: Apache-2.0
//
// Writing of checkpoints. Order of operations: files into a folder with a
// temporary name, each synced; the manifest; the folder synced and renamed; its
// parent synced; then, told so, old checkpoints removed. A kill at any point leaves the previous
// checkpoint or the new one, never a mixture. After the constructor and `open` nothing here
// allocates memory.
#include "runtime/checkpoint/checkpoint.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/files/json_number.h"
#include "runtime/process/clock.h"
#include "runtime/process/signs_of_life.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unistd.h>

namespace trainc {
namespace {

// Most checkpoints of a run that are pruned; what is written beyond stays.
constexpr size_t kept_room = 1 << 16;

// Errors of a save that are not errno: this less the number of a tensor that is not sound.
constexpr int unsound_error = -1;

path_text file_in(const path_text &folder, int member, int members) {
  return path_text("%s/rank-%05d-of-%05d.safetensors", static_cast<const char *>(folder), member,
                   members);
}

path_text manifest_in(const path_text &folder) {
  return path_text("%s/manifest.json", static_cast<const char *>(folder));
}

path_text name_of_step(const char *prefix, int64_t step) {
  return path_text("%sstep-%08" PRId64, prefix, step);
}

// Best effort: what stays is removed by the next start. Nothing is removed through a link.
void remove_folder(const path_text &path, int ranks, file_operations &files) {
  if (is_link(path)) {
    files.remove_file(path);
    return;
  }
  files.remove_file(manifest_in(path));
  for (int rank = 0; rank < ranks; ++rank)
    files.remove_file(file_in(path, rank, ranks));
  files.remove_directory(path);
}

} // namespace

checkpoint_writer::checkpoint_writer(const program &program, const arenas &arenas,
                                     arena_access &access, communicator &ranks,
                                     const folder_groups &groups, file_operations &files,
                                     std::string folder, const keep_policy &policy,
                                     const sample_order &order, bool background)
    : program_(program), access_(access), ranks_(ranks), members_(groups.members()), files_(files),
      folder_(std::move(folder)), around_(std::filesystem::path(folder_).parent_path()),
      policy_(policy), order_(order), reports_(static_cast<size_t>(ranks.size())) {
  deal_out(program, arenas, groups);
  make_texts(program);
  ranks_.together([&] {
    if (!background && !copies_always(program, arenas, access))
      return;
    size_t bytes = 0;
    for (size_t number : own_)
      bytes += static_cast<size_t>(tensors_[number].bytes);
    snapshot_.resize(bytes);
    copies_ = true;
    if (background)
      worker_.emplace();
  });
}

bool checkpoint_writer::copies_always(const program &program, const arenas &arenas,
                                      const arena_access &access) {
  for (const tensor_view &tensor : state_tensors(program, arenas))
    if (int64_t bytes = tensor.bytes; access.holder(tensor.data, bytes) != arena_access::every_rank)
      return true;
  return false;
}

int64_t checkpoint_writer::snapshot_bytes(const program &program, size_t ranks) {
  std::vector<tensor_view> tensors = state_tensors(program);
  int64_t largest = 0;
  for (const std::vector<size_t> &part : deal(tensors, ranks)) {
    int64_t bytes = 0;
    for (size_t number : part)
      bytes += tensors[number].bytes;
    largest = std::max(largest, bytes);
  }
  return largest;
}

// Numbers of the tensors of each rank: the largest first, each to the rank with the fewest bytes.
std::vector<std::vector<size_t>> checkpoint_writer::deal(const std::vector<tensor_view> &tensors,
                                                         size_t ranks) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  std::vector<std::vector<size_t>> dealt(ranks);
  std::vector<int64_t> bytes(dealt.size());
  for (size_t index : order) {
    auto least = static_cast<size_t>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    bytes[least] += tensors[index].bytes;
    dealt[least].push_back(index);
  }
  for (std::vector<size_t> &part : dealt)
    std::sort(part.begin(), part.end());
  return dealt;
}

void checkpoint_writer::deal_out(const program &program, const arenas &arenas,
                                 const folder_groups &groups) {
  tensors_ = state_tensors(program, arenas);
  writers_of_.resize(tensors_.size());
  for (int keeper : groups.keepers()) {
    const std::vector<int> members = groups.members_of(keeper);
    const std::vector<std::vector<size_t>> dealt = deal(tensors_, members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      std::vector<tensor_view> part;
      int64_t bytes = 0;
      for (size_t index : dealt[i]) {
        writers_of_[index].push_back(members[i]);
        part.push_back(tensors_[index]);
        bytes += tensors_[index].bytes;
      }
      std::string header = safetensors_header(part, {{"model", program.model_name}});
      bytes += static_cast<int64_t>(header.size());
      blocks_room_ = std::max(blocks_room_, blocks_of(bytes));
      if (keeper != groups.keeper())
        continue;
      file_bytes_.push_back(bytes);
      total_bytes_ += bytes;
      if (members[i] == ranks_.rank()) {
        member_ = static_cast<int>(i);
        own_ = dealt[i];
        own_header_ = std::move(header);
      }
    }
  }
  checksums_.resize(blocks_room_);
  all_checksums_.resize(blocks_room_ * static_cast<size_t>(ranks_.size()));
}

// What a manifest says of the program, and room for it.
void checkpoint_writer::make_texts(const program &program) {
  program_json_ = format_text("%s,\n  \"precision\": \"%s\"",
                              nlohmann::json(program.model_name).dump().c_str(), program.precision);
  computed_json_ = format_text("\"graph\": \"%s\",\n  \"objective\": %s", program.graph_digest,
                               nlohmann::json(program.objective).dump().c_str());
  if (*program.frozen_digest)
    computed_json_ += format_text(",\n  \"frozen\": \"%s\"", program.frozen_digest);
  size_t evaluated_bytes = 0;
  for (const char *result : names_of_results(program)) {
    evaluated_members_.push_back(held_out_member(result));
    evaluated_bytes += evaluated_members_.back().size() + 64;
  }
  evaluated_.reserve(evaluated_members_.size());
  watched_json_ = nlohmann::json(policy_.watched()).dump();
  manifest_.resize(4096 + evaluated_bytes + watched_json_.size() + program_json_.size() +
                   computed_json_.size() + members_.size() * (256 + blocks_room_ * 8));
}

void checkpoint_writer::open(uint64_t goes_on_from, const std::string &written_by) {
  if (!written_by.empty())
    written_by_json_ = "  \"written_by\": " + nlohmann::json(written_by).dump() + ",\n";
  manifest_.resize(manifest_.size() + written_by_json_.size());
  ranks_.together([&] {
    if (!keeps_folder())
      return;
    std::vector<std::string> made;
    if (files_.make_directories(folder_, made) != 0)
      throw failure(exit_disk, folder_ + ": the folder of checkpoints cannot be made: " +
                                   strerror(errno) + "\n  try: another folder");
    recover_checkpoints(folder_, files_);
    std::vector<checkpoint_info> present = list_checkpoints(folder_, [](const std::string &) {});
    kept_.reserve(present.size() + kept_room);
    for (auto info = present.rbegin(); info != present.rend(); ++info) {
      kept_.push_back(
          {info->step, info->sequence, static_cast<int>(info->files.size()),
           info->metric(policy_.best_by),
           /*is_sound=*/info->sequence <= goes_on_from && !is_link(info->path.c_str())});
      sequence_ = std::max(sequence_, info->sequence + 1);
    }
  });
  std::vector<uint64_t> all(static_cast<size_t>(ranks_.size())); // hosts may have others
  ranks_.gather(&sequence_, sizeof sequence_, all.data());
  sequence_ = *std::max_element(all.begin(), all.end());
}

int checkpoint_writer::failed(const char *operation) {
  int error = errno ? errno : EIO;
  if (!result_.operation[0])
    snprintf(result_.operation, sizeof result_.operation, "%s", operation);
  return error;
}

// Of the rank whose error it is; every rank gives its own. That of the first rank at the beginning.
const checkpoint_writer::report &checkpoint_writer::gather_reports(int error) {
  report own = {error,
                "",
                "",
                available_bytes(folder_).value_or(-1),
                available_files(folder_).value_or(-1),
                file_size_limit().value_or(-1)};
  memcpy(own.operation, result_.operation, sizeof own.operation);
  if (ranks_.size() > 1)
    gethostname(own.host, sizeof own.host - 1);
  ranks_.gather(&own, sizeof own, reports_.data());
  return reports_[static_cast<size_t>(result_.rank)];
}

// The error of the first rank that has one, or 0 when all succeeded.
int checkpoint_writer::agree(int error) {
  gather_reports(error);
  for (const report &each : reports_)
    if (each.error) {
      result_.rank = static_cast<int>(&each - reports_.data());
      memcpy(result_.operation, each.operation, sizeof result_.operation);
      memcpy(result_.host, each.host, sizeof result_.host);
      return each.error;
    }
  return 0;
}

int checkpoint_writer::write_block_wise(int file, const char *data, int64_t bytes) {
  while (bytes > 0) {
    int64_t piece = std::min(bytes, block_bytes - block_fill_);
    block_checksum_ = crc32c(block_checksum_, data, static_cast<size_t>(piece));
    if (files_.write_all(file, data, static_cast<size_t>(piece)) != 0)
      return failed("write");
    data += piece;
    bytes -= piece;
    block_fill_ += piece;
    if (block_fill_ == block_bytes) {
      checksums_[blocks_done_++] = block_checksum_;
      block_checksum_ = 0;
      block_fill_ = 0;
    }
  }
  return 0;
}

// From the copy, whose next tensor `copy` is, or where there is none from the device.
int checkpoint_writer::write_tensor(int file, size_t number, const char *copy) {
  const tensor_view &tensor = tensors_[number];
  int error = 0;
  in_transfers(tensor.bytes, [&](int64_t begin, int64_t bytes) {
    if (error)
      return;
    const char *data = copies_ ? copy + begin : access_.read(tensor.data + begin, bytes);
    error = is_sound(program_, number, tensor.type, data, bytes)
                ? write_block_wise(file, data, bytes)
                : unsound_error - static_cast<int>(number);
  });
  return error;
}

// Of what other ranks keep alone they send the pieces, all ranks in one order.
void checkpoint_writer::take_snapshot() {
  char *copy = snapshot_.data();
  for (size_t number = 0; number < tensors_.size(); ++number)
    in_transfers(tensors_[number].bytes, [&](int64_t begin, int64_t bytes) {
      for (int64_t end = begin + bytes; begin < end; begin += bytes) {
        const char *place = tensors_[number].data + begin;
        bytes = end - begin;
        copy = copy_piece(number, place, bytes, copy);
      }
    });
}

// Of tensor `number`. `bytes` become those that one rank keeps; returns the place of the next copy.
char *checkpoint_writer::copy_piece(size_t number, const char *place, int64_t &bytes, char *copy) {
  const int self = ranks_.rank(), holder = access_.holder(place, bytes);
  const bool holds = holder == arena_access::every_rank || holder == self;
  bool writes = false;
  for (int writer : writers_of_[number])
    if (writer == self) {
      writes = true;
      if (holds)
        memcpy(copy, access_.read(place, bytes), static_cast<size_t>(bytes));
      else
        ranks_.receive(copy, bytes, holder);
    } else if (holder == self)
      ranks_.send(access_.read(place, bytes), bytes, writer);
  if (writes || holder == self)
    note_work();
  return writes ? copy + bytes : copy;
}

// A new file, durable once write(file) has filled it.
template <typename Write>
int checkpoint_writer::write_file(const path_text &path, const Write &write) {
  int file = files_.create(path);
  if (file < 0)
    return failed("create");
  int error = write(file);
  if (!error && files_.sync(file) != 0)
    error = failed("fsync");
  if (files_.close(file) != 0 && !error)
    error = failed("close");
  return error;
}

int checkpoint_writer::write_own_file() {
  blocks_done_ = 0;
  block_checksum_ = 0;
  block_fill_ = 0;
  const path_text path = file_in(folder_of(temporary_prefix, at_.step), member_, members());
  return write_file(path, [this](int file) {
    int error =
        write_block_wise(file, own_header_.data(), static_cast<int64_t>(own_header_.size()));
    const char *copy = snapshot_.data();
    for (size_t number : own_) {
      if (!error)
        error = write_tensor(file, number, copy);
      copy += copies_ ? tensors_[number].bytes : 0;
    }
    if (block_fill_ > 0)
      checksums_[blocks_done_++] = block_checksum_;
    return error;
  });
}

int checkpoint_writer::write_manifest() {
  char *text = manifest_.data();
  size_t used = 0;
  auto print = [&](const char *pattern, auto... values) {
    used += static_cast<size_t>(snprintf(text + used, manifest_.size() - used, pattern, values...));
  };
  print("{\n  \"format\": \"trainc checkpoint 1\",\n  \"model\": %s,\n", program_json_.c_str());
  print("  \"fingerprint\": \"%016" PRIx64 "\",\n  %s,\n  \"step\": %" PRId64 ",\n",
        program_.fingerprint, computed_json_.c_str(), at_.step);
  print("  \"batches_taken\": %" PRId64 ",\n  \"skipped_steps\": %" PRId64
        ",\n  \"samples_per_batch\": %" PRId64 ",\n  \"seed\": %" PRIu64
        ",\n  \"data_order\": %" PRId64 ",\n  \"sequence\": %" PRIu64 ",\n%s",
        at_.batches_taken, at_.skipped_steps, order_.samples_per_batch, order_.seed, order_.number,
        sequence_, written_by_json_.c_str());
  char loss[32], number[32];
  if (const auto &choice = order_.choice)
    print("  \"samples\": {\"holdout\": %s, \"shuffled\": %s, \"leftovers\": \"%s\", "
          "\"overfit\": %" PRId64 "},\n",
          json_number(loss, choice->holdout), choice->shuffles ? "true" : "false",
          word_of(leftover_words, choice->rest), choice->overfit);
  print("  \"losses\": {\"count\": %" PRId64 ", \"mean\": %s, \"variance\": %s},\n",
        at_.losses.count, json_number(loss, at_.losses.mean),
        json_number(number, at_.losses.variance));
  if (at_.scale.factor != 0)
    print("  \"loss_scale\": {\"factor\": %s, \"finite_steps\": %" PRId64 "},\n",
          json_number(number, at_.scale.factor), at_.scale.finite_steps);
  print("  \"loss\": %s,\n", json_number(loss, at_.loss));
  for (size_t i = 0; i < evaluated_.size(); ++i)
    print("  %s: %s,\n", evaluated_members_[i].c_str(), json_number(number, evaluated_[i].value));
  if (at_.best.step > 0 || at_.best.later > 0)
    print("  \"best_evaluation\": {\"metric\": %s, \"step\": %" PRId64
          ", \"value\": %s, \"later\": %" PRId64 "},\n",
          watched_json_.c_str(), at_.best.step, json_number(number, at_.best.value),
          at_.best.later);
  print("  \"files\": [");
  for (int member = 0; member < members(); ++member) {
    const auto i = static_cast<size_t>(member);
    const int64_t bytes = file_bytes_[i];
    print("%s\n    {\"name\": \"rank-%05d-of-%05d.safetensors\", \"bytes\": %" PRId64
          ", \"crc32c\": \"",
          member ? "," : "", member, members(), bytes);
    const uint32_t *sums = all_checksums_.data() + static_cast<size_t>(members_[i]) * blocks_room_;
    for (size_t block = 0; block < blocks_of(bytes); ++block)
      print("%08x", sums[block]);
    print("\"}");
  }
  print("\n  ]");
  print(",\n  \"crc32c\": \"%08x\"\n}\n", crc32c(0, text, used));
  return write_file(manifest_in(folder_of(temporary_prefix, at_.step)), [&](int file) {
    return files_.write_all(file, text, used) != 0 ? failed("write") : 0;
  });
}

// Gives the complete folder its name.
int checkpoint_writer::publish() {
  const path_text written = folder_of(temporary_prefix, at_.step), name = folder_of("", at_.step),
                  removed = folder_of(removed_prefix, at_.step);
  if (files_.sync_path(written) != 0)
    return failed("fsync");
  const bool replaces = access(name, F_OK) == 0;
  // Some file systems cannot exchange names; then there is a moment with neither.
  const bool exchanges = replaces && files_.exchange(written, name) == 0;
  const bool hides = replaces && !exchanges;
  if (hides && files_.rename(name, removed) != 0)
    return failed("rename");
  if (!exchanges && files_.rename(written, name) != 0) {
    int error = failed("rename");
    if (hides)
      files_.rename(removed, name);
    return error;
  }
  if (files_.sync_path(folder_.c_str()) != 0) { // the names as they were
    int error = failed("fsync");
    const int back = exchanges ? files_.exchange(written, name) : files_.rename(name, written);
    stays_hidden_ = back != 0 || (hides && files_.rename(removed, name) != 0) ||
                    files_.sync_path(folder_.c_str()) != 0;
    return error;
  }
  if (replaces)
    forget(at_.step);
  if (kept_.size() < kept_.capacity())
    kept_.push_back(
        {at_.step, sequence_, members(), metric_of(policy_.best_by, at_.loss, evaluated_)});
  return 0;
}

// The older one of a step whose new one has the name.
void checkpoint_writer::forget(int64_t step) {
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i].step != step)
      continue;
    for (const char *prefix : {temporary_prefix, removed_prefix})
      remove_folder(folder_of(prefix, step), kept_[i].ranks, files_);
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

path_text checkpoint_writer::folder_of(const char *prefix, int64_t step) const {
  return path_text("%s/%s", folder_.c_str(), static_cast<const char *>(name_of_step(prefix, step)));
}

int remove_checkpoint(const std::string &folder, const char *name, int ranks,
                      file_operations &files) {
  const path_text path("%s/%s", folder.c_str(), name),
      removed("%s/%s%s", folder.c_str(), removed_prefix, name);
  if (is_link(path)) {
    errno = ELOOP;
    return -1;
  }
  if (files.rename(path, removed) != 0)
    return -1;
  remove_folder(removed, ranks, files);
  return 0;
}

void checkpoint_writer::prune() {
  if (keeps_folder())
    run([](void *writer) { static_cast<checkpoint_writer *>(writer)->remove_superfluous(); });
}

void checkpoint_writer::remove_superfluous() {
  for (size_t i; (i = first_superfluous(kept_, policy_)) < kept_.size();) {
    const kept_checkpoint oldest = kept_[i];
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    remove_checkpoint(folder_, name_of_step("", oldest.step), oldest.ranks, files_);
  }
}

// Part of a save that needs no other rank.
void checkpoint_writer::run(background_worker::job work) {
  if (worker_)
    worker_->start(work, this);
  else
    work(this);
}

void checkpoint_writer::begin(const run_position &at) {
  if (stage_ != stage::over)
    complete();
  at_ = at;
  evaluated_.assign(at.evaluated.begin(), at.evaluated.end());
  result_ = {};
  error_ = 0;
  stays_hidden_ = false;
  if (worker_)
    worker_->wait(); // for what is pruned
  for (span *of : {&copy_, &file_, &names_})
    of->clear();
  if (keeps_folder()) {
    const path_text written = folder_of(temporary_prefix, at.step);
    remove_folder(written, members(), files_); // of a failed attempt
    if (files_.make_directory(written) != 0 &&
        (errno != ENOENT || !make_folder() || files_.make_directory(written) != 0))
      error_ = failed("mkdir");
    else if (needs_sync_ && files_.sync_path(around_.c_str()) != 0)
      error_ = failed("fsync");
    needs_sync_ &= error_ != 0;
  }
  error_ = agree(error_);
  stage_ = error_ ? stage::failed : stage::files;
  if (error_)
    return;
  if (copies_) {
    copy_.start();
    take_snapshot();
    copy_.stop();
  }
  run([](void *writer) {
    auto *own = static_cast<checkpoint_writer *>(writer);
    own->file_.start();
    own->error_ = own->write_own_file();
    own->file_.stop();
  });
}

void checkpoint_writer::span::start() { begin = seconds_now(); }
void checkpoint_writer::span::stop() { end = seconds_now(); }

std::array<save_work, 3> checkpoint_writer::work() const {
  const int64_t own = file_bytes_[static_cast<size_t>(member_)];
  return {{{"copy checkpoint", copy_.begin, copy_.end, static_cast<int64_t>(snapshot_.size())},
           {"write checkpoint", file_.begin, file_.end, own},
           {"publish checkpoint", names_.begin, names_.end, total_bytes_}}};
}

// Where somebody has moved or removed it: the run has no older checkpoints any more.
bool checkpoint_writer::make_folder() {
  if (files_.make_directory(folder_.c_str()) != 0) {
    errno = errno == EEXIST ? ENOENT : errno; // a link that leads nowhere
    return false;
  }
  result_.made_folder = needs_sync_ = true;
  kept_.clear();
  return true;
}

bool checkpoint_writer::proceed() {
  if (stage_ == stage::over)
    return true;
  if (worker_)
    worker_->wait();
  int error = stage_ == stage::failed ? error_ : agree(error_);
  if (error || stage_ == stage::names) {
    finish(error);
    return true;
  }
  stage_ = stage::names;
  ranks_.gather(checksums_.data(), static_cast<int64_t>(blocks_room_ * 4), all_checksums_.data());
  if (keeps_folder())
    run([](void *writer) {
      auto *own = static_cast<checkpoint_writer *>(writer);
      int &error = own->error_;
      own->names_.start();
      if (!(error = own->write_manifest()))
        error = own->publish();
      own->names_.stop();
    });
  return false;
}

void checkpoint_writer::finish(int error) {
  stage_ = stage::over;
  if (error && keeps_folder() && !stays_hidden_)
    remove_folder(folder_of(temporary_prefix, at_.step), members(), files_);
  if (error) {
    ranks_.barrier(); // what was written in part no longer takes room
    const report &of_failed = gather_reports(error);
    result_.bytes_available = of_failed.bytes_available;
    if (of_failed.files_available < members() + 2) // its folder and the manifest
      result_.files_available = of_failed.files_available;
    result_.file_limit = of_failed.file_limit;
  }
  ++sequence_;
  result_.error = error;
  if (error <= unsound_error) {
    result_.error = save_result::not_finite;
    result_.tensor = tensors_[static_cast<size_t>(unsound_error - error)].name.c_str();
  }
  result_.bytes_needed = total_bytes_;
}

bool save_result::lacks_room() const {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

std::string save_problem(const save_result &result, const std::string &folder, int64_t step) {
  if (result.error == save_result::not_finite)
    return format_text("%s: the checkpoint of step %lld was not written: '%s' is not finite",
                       folder.c_str(), static_cast<long long>(step), result.tensor);
  std::string where = result.operation;
  if (result.host[0])
    where += format_text(", rank %d on %s", result.rank, result.host);
  std::string text =
      format_text("%s: the checkpoint of step %lld was not written (%s): %s", folder.c_str(),
                  static_cast<long long>(step), where.c_str(), strerror(result.error));
  if (result.error == EFBIG && result.file_limit >= 0)
    text += format_text("; a file may have %lld bytes (ulimit -f)",
                        static_cast<long long>(result.file_limit));
  else if (result.error == ENOSPC && result.files_available >= 0)
    text += format_text("; the file system has room for %lld files (inodes, df -i)",
                        static_cast<long long>(result.files_available));
  else if (result.error == ENOSPC)
    text += format_text("; it needs %lld bytes, %lld are available",
                        static_cast<long long>(result.bytes_needed),
                        static_cast<long long>(result.bytes_available));
  return text;
}

} // namespace trainc
