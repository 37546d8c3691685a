// SPDX-License-Identifier: Apache-2.0
//
// Reading of checkpoints. Nothing is believed before its checksum agrees: the
// manifest ends in its own, and holds one for every MiB of each file.
#include "runtime/checkpoint/checkpoint.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/files/crc32c.h"
#include "runtime/host_access.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <sys/stat.h>

namespace trainc {
namespace {

using nlohmann::json;

constexpr int64_t largest_manifest = 64 << 20;
constexpr int manifest_nesting = 3; // object of a list of objects
constexpr const char *checksum_member = ",\n  \"crc32c\": \"";

[[noreturn]] void refuse(const std::string &path, const std::string &why) {
  throw failure(exit_checkpoint, path + ": " + why);
}

std::string manifest_text(const std::string &path) {
  input_file file(path, exit_checkpoint);
  if (file.size() > largest_manifest)
    file.refuse("is too large for a manifest");
  std::string text = file.whole_text();
  size_t end = text.rfind(checksum_member);
  if (end == std::string::npos)
    file.refuse("is truncated");
  std::string expected = format_text("%s%08x\"\n}\n", checksum_member, crc32c(0, text.data(), end));
  if (text.substr(end) != expected)
    file.refuse("is damaged: its checksum does not agree");
  return text;
}

std::vector<uint32_t> checksums_of(const std::string &path, const std::string &digits,
                                   int64_t bytes) {
  size_t blocks = blocks_of(bytes);
  if (digits.size() != blocks * 8 ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    refuse(path, "is damaged: wrong number of checksums");
  std::vector<uint32_t> result;
  for (size_t block = 0; block < blocks; ++block)
    result.push_back(static_cast<uint32_t>(std::stoul(digits.substr(block * 8, 8), nullptr, 16)));
  return result;
}

// A manifest may say anything and have a checksum that agrees.
struct absurd_number {
  std::string what;
};

constexpr int64_t most_steps = int64_t{1}
                               << 53; // more than any run takes; so many are exact in f64

int64_t count_in(const json &object, const char *name, int64_t most = most_steps) {
  const json &value = object.at(name);
  const bool is_count = value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t(most);
  if (!is_count)
    throw absurd_number{format_text("'%s' is %s, expected a whole number from 0 to %lld", name,
                                    value.dump().c_str(), static_cast<long long>(most))};
  return value.get<int64_t>();
}

// 0 where the manifest does not say it.
int64_t count_if_said(const json &object, const char *name) {
  return object.contains(name) ? count_in(object, name) : 0;
}

double number_in(const json &object, const char *name, double least) {
  const json &value = object.at(name);
  if (!value.is_number() || !(value.get<double>() >= least))
    throw absurd_number{
        format_text("'%s' is %s, expected a number from %g", name, value.dump().c_str(), least)};
  return value.get<double>();
}

uint64_t unsigned_in(const json &object, const char *name) {
  const json &value = object.at(name);
  if (!value.is_number_unsigned())
    throw absurd_number{
        format_text("'%s' is %s, expected a whole number from 0", name, value.dump().c_str())};
  return value.get<uint64_t>();
}

sample_choice choice_of(const json &samples) {
  const auto word = samples.at("leftovers").get<std::string>();
  const std::optional<leftovers> rest = value_of(leftover_words, word);
  if (!rest)
    throw std::out_of_range(word);
  return {number_in(samples, "holdout", 0), samples.at("shuffled").get<bool>(), *rest,
          count_in(samples, "overfit")};
}

} // namespace

bool is_checkpoint_name(const std::string &name) {
  return name.starts_with("step-") && name.size() > 5 &&
         name.find_first_not_of("0123456789", 5) == std::string::npos;
}

int64_t step_of_checkpoint(const std::string &name) {
  int64_t step = -1; // of more digits than any step has
  std::from_chars(name.data() + strlen("step-"), name.data() + name.size(), step);
  return step;
}

bool is_checkpoint(const std::string &path) {
  return is_checkpoint_name(std::filesystem::path(path).filename()) &&
         exists(path + "/manifest.json");
}

bool is_link(const char *path) {
  struct stat information;
  return lstat(path, &information) == 0 && S_ISLNK(information.st_mode);
}

// Of entries that are checkpoints by name.
static std::vector<std::string> names_of_checkpoints(const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::end(entry);
       entry.increment(error))
    if (is_checkpoint_name(entry->path().filename()))
      names.push_back(entry->path().filename());
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    refuse(folder, "cannot be read: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> linked_checkpoints(const std::string &folder) {
  std::vector<std::string> names = names_of_checkpoints(folder);
  std::erase_if(names,
                [&](const std::string &name) { return !is_link((folder + "/" + name).c_str()); });
  return names;
}

bool has_checkpoints(const std::string &folder) {
  std::error_code ignored;
  for (auto &entry : std::filesystem::directory_iterator(folder, ignored))
    if (is_checkpoint(entry.path()))
      return true;
  return false;
}

// The members that say what the results of the step's evaluation were, and the best of the run.
static void read_evaluations(const json &manifest, checkpoint_info &info) {
  // Null: not finite; where nothing is known of the best one, not evaluated.
  const bool keeps_null = manifest.contains("best_evaluation");
  for (auto &[name, value] : manifest.items())
    if (name.starts_with(held_out_prefix) && (keeps_null || !value.is_null()))
      info.evaluated.emplace_back(name.substr(strlen(held_out_prefix)),
                                  value.is_null() ? NAN : value.get<double>());
  std::stable_partition(info.evaluated.begin(), info.evaluated.end(),
                        [](const auto &result) { return result.first == "loss"; });
  if (auto best = manifest.find("best_evaluation"); best != manifest.end()) {
    info.watched = best->at("metric").get<std::string>();
    const json &value = best->at("value"); // null: none was finite
    info.best = {count_in(*best, "step", info.step), value.is_null() ? NAN : value.get<double>(),
                 count_in(*best, "later")};
  }
}

checkpoint_info read_manifest(const std::string &folder) {
  std::string path = folder + "/manifest.json";
  json manifest = bounded_json(manifest_text(path), manifest_nesting);
  checkpoint_info info;
  info.path = folder;
  try {
    if (manifest.at("format") != "trainc checkpoint 1")
      refuse(path, "has an unknown format");
    info.step = count_in(manifest, "step");
    info.batches_taken = count_in(manifest, "batches_taken");
    info.order.samples_per_batch = count_if_said(manifest, "samples_per_batch");
    info.order.number = count_if_said(manifest, "data_order");
    if (auto samples = manifest.find("samples"); samples != manifest.end())
      info.order.choice = choice_of(*samples);
    if (manifest.contains("skipped_steps"))
      info.skipped_steps = count_in(manifest, "skipped_steps", info.step);
    if (auto losses = manifest.find("losses"); losses != manifest.end())
      info.losses = {count_in(*losses, "count"), losses->at("mean").get<double>(),
                     number_in(*losses, "variance", 0)};
    if (auto scale = manifest.find("loss_scale"); scale != manifest.end())
      info.scale = {number_in(*scale, "factor", 0), count_in(*scale, "finite_steps")};
    if (auto loss = manifest.find("loss"); loss != manifest.end() && !loss->is_null())
      info.loss = loss->get<double>();
    read_evaluations(manifest, info);
    info.order.seed = unsigned_in(manifest, "seed");
    info.sequence = static_cast<uint64_t>(count_in(manifest, "sequence"));
    info.written_by = manifest.value("written_by", "");
    info.model = manifest.at("model").get<std::string>();
    info.precision = manifest.value("precision", "");
    info.fingerprint = std::stoull(manifest.at("fingerprint").get<std::string>(), nullptr, 16);
    info.computed = {manifest.value("graph", ""), manifest.value("objective", ""),
                     manifest.value("frozen", "")};
    for (const json &entry : manifest.at("files")) {
      checkpoint_info::file file;
      file.name = entry.at("name").get<std::string>();
      file.bytes = entry.at("bytes").get<int64_t>();
      if (file.name.find('/') != std::string::npos || file.bytes < 0)
        refuse(path, "is damaged");
      file.block_checksums = checksums_of(path, entry.at("crc32c").get<std::string>(), file.bytes);
      info.files.push_back(std::move(file));
    }
  } catch (const failure &) {
    throw;
  } catch (const absurd_number &number) {
    refuse(path, "is damaged: " + number.what);
  } catch (const std::exception &) {
    refuse(path, "is damaged");
  }
  return info;
}

double checkpoint_info::metric(const std::string &name) const {
  std::vector<named_number> results;
  for (const auto &[result, value] : evaluated)
    results.push_back({result.c_str(), value});
  return metric_of(name, loss, results);
}

void verify_files(const checkpoint_info &info) {
  std::vector<char> block(block_bytes);
  for (const checkpoint_info::file &entry : info.files) {
    input_file file(info.path + "/" + entry.name, exit_checkpoint);
    if (file.size() != entry.bytes)
      file.refuse(format_text("has %lld bytes, the manifest says %lld",
                              static_cast<long long>(file.size()),
                              static_cast<long long>(entry.bytes)));
    for (size_t index = 0; index < entry.block_checksums.size(); ++index) {
      int64_t begin = static_cast<int64_t>(index) * block_bytes;
      int64_t length = std::min(block_bytes, entry.bytes - begin);
      file.read(begin, block.data(), length);
      if (crc32c(0, block.data(), static_cast<size_t>(length)) != entry.block_checksums[index])
        file.refuse(format_text("is damaged between bytes %lld and %lld",
                                static_cast<long long>(begin),
                                static_cast<long long>(begin) + length));
    }
  }
}

void check_model(const checkpoint_info &info, const program &program) {
  const bool is_double = program.parameter_type == data_type::f64;
  if (info.model == program.model_name && !info.precision.empty() &&
      (info.precision == "f64") != is_double)
    refuse(info.path, format_text("is of --precision %s, and this trainer of %s: parameters in 64 "
                                  "bits go with f64 alone\n  try: trainc --precision %s, or "
                                  "another --run folder",
                                  without_controls(info.precision).c_str(), program.precision,
                                  without_controls(info.precision).c_str()));
  if (info.fingerprint != program.fingerprint)
    refuse(info.path,
           format_text("is a checkpoint of another model: '%s' with fingerprint %016llx; this "
                       "is '%s' with fingerprint %016llx\n  try: the trainer that wrote it, or "
                       "another folder",
                       without_controls(info.model).c_str(),
                       static_cast<unsigned long long>(info.fingerprint), program.model_name,
                       static_cast<unsigned long long>(program.fingerprint)));
}

std::string change_of_graph(const computed_from_parameters &before, const program &now) {
  constexpr size_t version_digits = 2;
  const std::string &was = before.graph_digest, is = now.graph_digest;
  if (was == is || was.empty() || is.empty() ||
      was.compare(0, version_digits, is, 0, version_digits) != 0)
    return "";
  if (!now.adapters.empty())
    return "the model's graph, or the alpha or dropout of its adapters";
  return "the model's graph: other operators, attributes or constants, as in a file that was "
         "exported for another batch";
}

std::vector<std::string> changes_of_computation(const computed_from_parameters &before,
                                                const program &now) {
  std::vector<std::string> changes;
  const std::string &was = before.objective, is = now.objective;
  if (was != is && !was.empty() && !is.empty())
    changes.push_back("the loss " + is + ", was " + was);
  if (std::string graph = change_of_graph(before, now); !graph.empty())
    changes.push_back(graph);
  if (before.frozen_digest != now.frozen_digest && !before.frozen_digest.empty() &&
      *now.frozen_digest)
    changes.push_back("the frozen weights, which have other values");
  return changes;
}

namespace {

// The files of a checkpoint, and which has a tensor.
class tensor_files {
public:
  explicit tensor_files(const checkpoint_info &info) : info_(info) {
    for (const checkpoint_info::file &entry : info.files) {
      auto file = std::make_unique<input_file>(info.path + "/" + entry.name, exit_checkpoint);
      safetensors_index index = read_safetensors_index(*file);
      for (auto &[name, tensor] : index.tensors)
        if (!holder_.emplace(name, files_.size()).second)
          refuse(info.path, "names tensor '" + name + "' in two files");
      files_.push_back({std::move(file), std::move(index)});
    }
  }
  void read(const tensor_view &tensor, arena_access &access) const {
    auto found = holder_.find(tensor.name);
    if (found == holder_.end())
      refuse(info_.path, "has no tensor '" + tensor.name + "'");
    const opened &entry = files_[found->second];
    read_tensor(*entry.file, entry.index, tensor, access);
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto &[name, file] : holder_)
      names.insert(name);
    return names;
  }

private:
  struct opened {
    std::unique_ptr<input_file> file;
    safetensors_index index;
  };
  const checkpoint_info &info_;
  std::vector<opened> files_;
  std::map<std::string, size_t> holder_;
};

} // namespace

std::set<std::string> names_in(const checkpoint_info &info) { return tensor_files(info).names(); }

void check_frozen_weights(const checkpoint_info &info, const program &program,
                          const arenas &arenas) {
  if (program.frozen_count == 0)
    return;
  const tensor_files files(info);
  const std::set<std::string> stored = files.names();
  const std::vector<tensor_view> all = parameter_tensors(program, arenas);
  host_access memory;
  for (auto i = static_cast<size_t>(kept_parameters(program)); i < all.size(); ++i) {
    if (!stored.count(all[i].name))
      continue;
    std::vector<char> values;
    const tensor_view floats = floats_beside(program, all[i], values);
    files.read(floats, memory);
    if (!has_values_of(program, arenas, all[i], values.data()))
      refuse(info.path, "has other values of the frozen weight '" + all[i].name +
                            "' than the file beside the trainer\n  try: trainc of a model that has "
                            "these values");
  }
}

void load_tensors(const checkpoint_info &info, const std::vector<tensor_view> &tensors,
                  arena_access &access) {
  tensor_files files(info);
  for (const tensor_view &tensor : tensors)
    files.read(tensor, access);
}

void check_sound(const checkpoint_info &info, const program &program) {
  tensor_files files(info);
  host_access access;
  std::vector<char> values;
  std::vector<tensor_view> tensors = state_tensors(program);
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.resize(static_cast<size_t>(tensors[i].bytes));
    tensors[i].data = values.data();
    files.read(tensors[i], access);
    if (!is_sound(program, i, tensors[i].type, values.data(), tensors[i].bytes))
      refuse(info.path, "'" + tensors[i].name + "' is not finite");
  }
}

namespace {

// Nothing where it is not whole.
std::optional<checkpoint_info> whole_checkpoint(const std::string &path) {
  try {
    checkpoint_info info = read_manifest(path);
    verify_files(info);
    return info;
  } catch (const failure &) {
    return std::nullopt;
  }
}

// Who wrote it may have been killed before.
int make_durable(const checkpoint_info &info, file_operations &files) {
  for (const checkpoint_info::file &file : info.files)
    if (files.sync_path((info.path + "/" + file.name).c_str()) != 0)
      return -1;
  return files.sync_path((info.path + "/manifest.json").c_str()) == 0
             ? files.sync_path(info.path.c_str())
             : -1;
}

} // namespace

void recover_checkpoints(const std::string &folder, file_operations &files) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> left;
  for (auto &entry : fs::directory_iterator(folder, error))
    left.push_back(entry.path().filename());
  // The new one of a pair was complete before the old one lost its name: `.writing-` first.
  std::sort(left.begin(), left.end(), std::greater<>());
  for (const std::string &name : left)
    for (const char *prefix : {temporary_prefix, removed_prefix}) {
      if (!name.starts_with(prefix))
        continue;
      std::string path = folder + "/" + name, final = name.substr(strlen(prefix));
      std::optional<checkpoint_info> whole;
      if (is_checkpoint_name(final) && !exists(folder + "/" + final))
        whole = whole_checkpoint(path);
      if (!whole)
        files.remove_tree(path); // what stays is removed by the next start
      else if (make_durable(*whole, files) != 0 ||
               files.rename(path.c_str(), (folder + "/" + final).c_str()) != 0 ||
               files.sync_path(folder.c_str()) != 0)
        throw failure(exit_disk, path + ": is a whole checkpoint that cannot get its name back: " +
                                     strerror(errno));
    }
}

std::vector<checkpoint_info> list_checkpoints(const std::string &folder,
                                              const std::function<void(std::string)> &warn) {
  std::vector<checkpoint_info> result;
  for (const std::string &name : names_of_checkpoints(folder)) {
    try {
      result.push_back(read_manifest(folder + "/" + name));
    } catch (const failure &error) {
      warn(error.message);
    }
  }
  std::sort(result.begin(), result.end(), [](const auto &a, const auto &b) {
    return a.sequence != b.sequence ? a.sequence > b.sequence : a.step > b.step;
  });
  return result;
}

std::optional<checkpoint_info> newest_whole(const std::string &folder, const program &program,
                                            const std::function<void(std::string)> &warn) {
  auto note = [&](const std::string &problem) {
    warn(problem + "\n  this checkpoint is passed over");
  };
  for (checkpoint_info &info : list_checkpoints(folder, note)) {
    check_model(info, program);
    try {
      verify_files(info);
      return std::move(info);
    } catch (const failure &error) {
      note(error.message);
    }
  }
  return std::nullopt;
}

checkpoint_info find_checkpoint(const std::string &which, const std::string &folder,
                                const program &program,
                                const std::function<void(std::string)> &warn) {
  std::string path = which == "latest" ? folder : which;
  std::error_code ignored;
  if (which != "latest" && !has_checkpoints(path) &&
      std::filesystem::is_directory(path + "/checkpoints", ignored))
    path += "/checkpoints"; // a run's folder
  if (exists(path + "/manifest.json")) {
    checkpoint_info info = read_manifest(path);
    check_model(info, program);
    verify_files(info);
    return info;
  }
  bool damaged = false;
  auto note = [&](const std::string &problem) {
    damaged = true;
    warn(problem);
  };
  if (std::optional<checkpoint_info> newest = newest_whole(path, program, note))
    return std::move(*newest);
  if (damaged)
    refuse(path, "holds no undamaged checkpoint");
  if (which != "latest")
    refuse(path,
           "is not a checkpoint and not a folder of checkpoints\n  try: latest, best, step-N, "
           "initial, or a path that checkpoints list shows");
  return {};
}

} // namespace trainc
