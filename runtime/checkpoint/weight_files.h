// SPDX-License-Identifier: Apache-2.0
//
// Weights as people have them: a safetensors file, several that an index lists, as Hugging Face
// writes them, or a checkpoint of this or another program.
#pragma once

#include "runtime/data/data_manifest.h"
#include "runtime/files/safetensors.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace trainc {

// Of the folder of a run, or of checkpoints, the newest checkpoint there is now; else the path.
// Throws `failure` (exit_checkpoint).
std::string path_of_weights(const std::string &path);

// The files that a name stands for, what lists the others first: a folder for its
// model.safetensors.index.json, model.safetensors or newest checkpoint. Throws `failure`
// (exit_checkpoint).
std::vector<std::string> weight_files_of(const std::string &path);

// Of all of them; of a checkpoint that of its manifest, which has checksums of the others.
file_content content_of_weights(const std::string &path);

class weights {
  struct opened_file {
    input_file file;
    safetensors_index index;
    explicit opened_file(const std::string &path);
  };

public:
  struct held_tensor {
    const stored_tensor *stored;
    const opened_file *file;
    std::string name; // there
  };

  // Throws `failure` (exit_checkpoint).
  explicit weights(const std::string &path);

  const std::string &path() const { return path_; }
  const std::map<std::string, held_tensor> &tensors() const { return tensors_; }
  const stored_tensor *find(const std::string &name) const;

  // Calls each tensor what `renamed` gives for its name. Throws `failure` (exit_checkpoint) where
  // two would have one name.
  void rename(const std::function<std::string(const std::string &)> &renamed);

  // Takes what nn.DataParallel or torch.compile puts before a module's names off all of them, and
  // returns it; empty: they have nothing of that kind in common.
  std::string drop_wrapper();

  // Fills `target` from the tensor of that name, of any type of floats.
  void read(const tensor_view &target, arena_access &arenas);
  std::vector<char> bytes_of(const std::string &name) const;

  // By type of the file, the names of tensors that were read as another one.
  const std::map<std::string, std::set<std::string>> &converted() const { return converted_; }

private:
  const opened_file &open(const std::string &path);
  void add_indexed();
  void add_checkpoint(const std::string &folder);
  void add(const std::string &name, const opened_file &file);

  std::string path_;
  std::vector<std::unique_ptr<opened_file>> files_;
  std::map<std::string, held_tensor> tensors_; // by name
  std::map<std::string, std::set<std::string>> converted_;
};

} // namespace trainc
