// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/weight_files.h"

#include "runtime/checkpoint/adapters.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/files/inner_path.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace trainc {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *index_end = ".index.json", *whole_name = "model.safetensors",
                     *manifest_name = "manifest.json"; // of a checkpoint
constexpr const char *wrappers[] = {"module.", "_orig_mod."};
constexpr int64_t largest_index = 64 << 20; // bytes
constexpr int deepest_index = 2;            // the map in an object

[[noreturn]] void refuse_weights(const std::string &path, const std::string &why) {
  throw failure(exit_checkpoint, path + ": " + why);
}

bool is_index(const std::string &path) { return path.ends_with(index_end); }

// The checkpoint whose manifest the file is; empty: it is none.
std::string checkpoint_of(const fs::path &file) {
  if (file.filename() != manifest_name)
    return "";
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

// Of a run or a folder of checkpoints. One that cannot be read is not passed over: an older one
// would be another beginning. Empty: there is none.
std::string newest_checkpoint(const std::string &path) {
  const auto refuse = [](const std::string &problem) { throw failure(exit_checkpoint, problem); };
  for (const std::string &folder : {path, path + "/checkpoints"})
    if (const auto found = list_checkpoints(folder, refuse); !found.empty())
      return found.front().path;
  return "";
}

// The file that a folder stands for.
std::string main_file_of(const std::string &path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return path;
  const std::string whole = path + "/" + whole_name;
  for (const std::string &file :
       {whole + index_end, whole, path + "/" + adapter_weights, path + "/" + manifest_name})
    if (exists(file))
      return file;
  if (const std::string newest = newest_checkpoint(path); !newest.empty())
    return newest + "/" + manifest_name;
  refuse_weights(path, std::string("holds no ") + whole_name + " and no " + whole_name + index_end +
                           ", and no checkpoint\n  try: the name of a safetensors file, or the "
                           "folder of a run");
}

// File by tensor.
std::map<std::string, std::string> weight_map_of(const std::string &path) {
  const input_file file(path, exit_checkpoint);
  if (file.size() > largest_index)
    refuse_weights(path, "is too large for an index");
  const json index = bounded_json(file.whole_text(), deepest_index);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    refuse_weights(path, "is not an index of safetensors files: it has no weight_map");
  std::map<std::string, std::string> files;
  for (auto &[name, shard] : index["weight_map"].items()) {
    if (!shard.is_string())
      refuse_weights(path, "its weight_map has no file for '" + without_controls(name) + "'");
    const auto file = shard.get<std::string>();
    if (const std::string why = problem_of_inner_path(file); !why.empty())
      refuse_weights(path, "weight_map of '" + without_controls(name) + "': file '" +
                               without_controls(file) + "' " + why +
                               "\n  try: put the shards beside the index, under the names that "
                               "they were written with");
    files[name] = (fs::path(path).parent_path() / file).string();
  }
  return files;
}

// What torch.save wrote is a zip file, of old a pickle. A header's length may begin with the same
// bytes, and `{` is after it.
void refuse_pickle(const input_file &file) {
  unsigned char begin[9] = {};
  file.read(0, begin, std::min(file.size(), int64_t{sizeof begin}));
  const bool is_zip = memcmp(begin, "PK\3\4", 4) == 0;
  const bool is_pickle = begin[0] == 0x80 && begin[1] >= 2 && begin[1] <= 5;
  if ((is_zip || is_pickle) && begin[8] != '{')
    refuse_weights(
        file.path(),
        std::string("is a ") + (is_zip ? "zip file" : "pickle") +
            ", as torch.save writes, and not a safetensors file\n  try: "
            "safetensors.torch.save_file(module.state_dict(), 'weights.safetensors') in Python, "
            "or, where weights are tied, save_model(module, 'weights.safetensors') of the same "
            "package");
}

} // namespace

std::string path_of_weights(const std::string &path) {
  const std::string checkpoint = checkpoint_of(main_file_of(path));
  return checkpoint.empty() ? path : checkpoint;
}

std::vector<std::string> weight_files_of(const std::string &path) {
  std::vector<std::string> files = {main_file_of(path)};
  if (const std::string checkpoint = checkpoint_of(files.front()); !checkpoint.empty()) {
    for (const checkpoint_info::file &file : read_manifest(checkpoint).files)
      files.push_back(checkpoint + "/" + file.name);
    return files;
  }
  if (!is_index(files.front()))
    return files;
  std::set<std::string> shards;
  for (const auto &[name, file] : weight_map_of(files.front()))
    shards.insert(file);
  files.insert(files.end(), shards.begin(), shards.end());
  return files;
}

file_content content_of_weights(const std::string &path) {
  const std::string main = main_file_of(path);
  if (!checkpoint_of(main).empty())
    return content_of(input_file(main, exit_checkpoint));
  file_content content;
  for (const std::string &file : weight_files_of(path))
    content = content_of(input_file(file, exit_checkpoint), content);
  return content;
}

weights::opened_file::opened_file(const std::string &path) : file(path, exit_checkpoint) {
  refuse_pickle(file);
  index = read_safetensors_index(file);
  const auto content = index.metadata.find(content_entry);
  const std::string holds = content == index.metadata.end() ? "" : content->second;
  if (holds == content_gradients || holds == content_dump)
    refuse_weights(path, "holds " + holds + ", as `" +
                             (holds == content_dump ? "train --dump" : "gradients") +
                             "` writes them, and no parameters\n  try: a file of parameters, or "
                             "the safetensors file of a checkpoint");
}

weights::weights(const std::string &path) : path_(main_file_of(path)) {
  if (const std::string checkpoint = checkpoint_of(path_); !checkpoint.empty()) {
    add_checkpoint(checkpoint);
  } else if (is_index(path_)) {
    add_indexed();
  } else {
    const opened_file &file = open(path_);
    for (const auto &[name, tensor] : file.index.tensors)
      add(name, file);
  }
}

const weights::opened_file &weights::open(const std::string &path) {
  return *files_.emplace_back(std::make_unique<opened_file>(path));
}

void weights::add_indexed() {
  std::map<std::string, const opened_file *> opened; // by path
  for (const auto &[name, file] : weight_map_of(path_)) {
    const opened_file *&holder = opened[file];
    if (!holder)
      holder = &open(file);
    if (!holder->index.tensors.count(name))
      refuse_weights(file, "has no tensor '" + name + "', which " + path_ + " says of it");
    add(name, *holder);
  }
}

// Its parameters, without the optimizer's states.
void weights::add_checkpoint(const std::string &folder) {
  const checkpoint_info info = read_manifest(folder);
  verify_files(info);
  for (const checkpoint_info::file &entry : info.files) {
    const opened_file &file = open(info.path + "/" + entry.name);
    for (const auto &[name, tensor] : file.index.tensors)
      if (!name.starts_with(state_prefix))
        add(name, file);
  }
}

void weights::add(const std::string &name, const opened_file &file) {
  tensors_[name] = {&file.index.tensors.at(name), &file, name};
}

const stored_tensor *weights::find(const std::string &name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.stored;
}

void weights::rename(const std::function<std::string(const std::string &)> &renamed) {
  std::map<std::string, held_tensor> tensors;
  for (const auto &[name, tensor] : tensors_) {
    const std::string now = renamed(name);
    if (const auto [at, is_new] = tensors.emplace(now, tensor); !is_new)
      refuse_weights(path_, "'" + at->second.name + "' and '" + tensor.name + "' would both be '" +
                                now + "'\n  try: another --rename");
  }
  tensors_ = std::move(tensors);
}

std::string weights::drop_wrapper() {
  for (std::string wrapper : wrappers) {
    if (tensors_.empty() || !std::all_of(tensors_.begin(), tensors_.end(), [&](const auto &entry) {
          return entry.first.starts_with(wrapper);
        }))
      continue;
    rename([&](const std::string &name) { return name.substr(wrapper.size()); });
    return wrapper;
  }
  return "";
}

void weights::read(const tensor_view &target, arena_access &arenas) {
  const held_tensor &from = tensors_.at(target.name);
  tensor_view view = target;
  view.name = from.name;
  read_tensor(from.file->file, from.file->index, view, arenas, taken_types::all_floats);
  if (from.stored->type != safetensors_name_of(target.type))
    converted_[from.stored->type].insert(target.name);
}

std::vector<char> weights::bytes_of(const std::string &name) const {
  const held_tensor &from = tensors_.at(name);
  std::vector<char> bytes(static_cast<size_t>(from.stored->bytes));
  from.file->file.read(from.stored->offset, bytes.data(), from.stored->bytes);
  return bytes;
}

} // namespace trainc
