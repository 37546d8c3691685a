// SPDX-License-Identifier: Apache-2.0
//
// Files of an instance: the model's own, checkpoints in the trainer's format, the exported model.
#include "runtime/library/instance.h"

#include "runtime/checkpoint/module_weights.h"
#include "runtime/checkpoint/onnx_export.h"
#include "runtime/failure.h"
#include "runtime/files/output_file.h"
#include "runtime/files/own_files.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace trainc {

// A file of the model: beside what the program's constants were loaded from, which is the shared
// library or the program that it is linked into; or a folder above, where the compiler leaves it.
std::string library_instance::own_path(const char *name) const {
  if (!options_.folder.empty())
    return options_.folder + "/" + name;
  Dl_info found = {};
  std::error_code ignored;
  std::filesystem::path folder = ".";
  if (dladdr(&program_, &found) != 0 && found.dli_fname)
    folder = std::filesystem::canonical(found.dli_fname, ignored).parent_path();
  const std::filesystem::path above = folder / ".." / name;
  return std::filesystem::exists(folder / name, ignored) || !std::filesystem::exists(above, ignored)
             ? folder / name
             : above;
}

void library_instance::load_initial_parameters() {
  const std::string path = own_path(own_parameters);
  if (access(path.c_str(), F_OK) != 0)
    throw failure(exit_checkpoint,
                  path + ": is missing; the compiler wrote it with the library\n  try: a folder "
                         "that has it; or no_files, and parameters of your own");
  input_file file(path, exit_checkpoint);
  const safetensors_index index = read_safetensors_index(file);
  for (const tensor_view &tensor : parameter_tensors(program_, target_.places()))
    read_tensor(file, index, tensor, target_);
}

std::vector<char> library_instance::parameters_now() {
  std::vector<char> bytes(
      static_cast<size_t>(program_.arena_bytes[static_cast<int>(arena_kind::parameters)]));
  target_.copy(bytes.data(), target_.places()[arena_kind::parameters],
               static_cast<int64_t>(bytes.size()));
  return bytes;
}

// Reads parameters, and where that fails leaves those that there were.
template <typename Work> void library_instance::or_as_before(const Work &work) {
  const std::vector<char> before = parameters_now();
  try {
    work();
  } catch (...) {
    target_.copy(target_.places()[arena_kind::parameters], before.data(),
                 static_cast<int64_t>(before.size()));
    throw;
  }
}

// Calls work(arenas), whose parameters the host can follow.
template <typename Work> void library_instance::with_parameters(const Work &work) {
  if (target_.is_host_memory())
    return work(target_.places());
  std::vector<char> copies = parameters_now();
  arenas places = target_.places();
  places.base[static_cast<int>(arena_kind::parameters)] = copies.data();
  work(places);
}

// Calls work(states), which the host can follow; what it changes is changed.
template <typename Work> void library_instance::with_states(const Work &work) {
  const std::span<const tensor_view> own = tensors(library_kind::state);
  std::vector<tensor_view> states(own.begin(), own.end());
  if (target_.is_host_memory())
    return work(states);
  std::vector<std::vector<char>> copies;
  for (tensor_view &state : states) {
    copies.emplace_back(static_cast<size_t>(state.bytes));
    target_.copy(copies.back().data(), state.data, state.bytes);
    state.data = copies.back().data();
  }
  work(states);
  for (size_t i = 0; i < states.size(); ++i)
    target_.copy(own[i].data, copies[i].data(), own[i].bytes);
}

void library_instance::load(const std::string &path) {
  std::error_code ignored;
  const bool is_run = std::filesystem::is_directory(path + "/checkpoints", ignored);
  const checkpoint_info info =
      find_checkpoint("latest", is_run ? path + "/checkpoints" : path, program_,
                      [&](const std::string &text) { warn(text); });
  if (info.path.empty())
    throw failure(exit_checkpoint, path + ": is no checkpoint and holds none\n  try: another path");
  for (const std::string &change : changes_of_computation(info.computed, program_))
    warn(info.path + ": its parameters were trained with " + change);
  const bool trains = target_.places()[arena_kind::optimizer_state] != nullptr;
  std::vector<tensor_view> loaded = trains ? state_tensors(program_, target_.places())
                                           : parameter_tensors(program_, target_.places());
  // A trainer's checkpoint lacks frozen weights, which stay as they are.
  std::set<std::string> lacking;
  const std::set<std::string> stored = names_in(info);
  for (const parameter_place &place : program_.parameters)
    if (place.role == parameter_role::frozen && !stored.count(place.tensor.name))
      lacking.insert(place.tensor.name);
  std::erase_if(loaded, [&](const tensor_view &tensor) { return lacking.count(tensor.name) > 0; });
  load_tensors(info, loaded, target_);
  done_ = 0;
  position_ = {};
  position_.step = info.step;
  position_.batches_taken = info.batches_taken;
  position_.skipped_steps = info.skipped_steps;
  position_.loss = info.loss;
  position_.losses = info.losses;
  if (program_.loss_scale_offset >= 0)
    position_.scale = info.scale.factor > 0 ? info.scale : loss_scale{defaults_.loss_scale};
}

void library_instance::save(const std::string &folder) {
  check_trains("save");
  sample_order order;
  order.seed = options_.seed;
  keep_policy policy;
  checkpoint_writer writer(program_, target_.places(), target_, ranks_, folder_groups(ranks_),
                           real_file_operations(), folder, policy, order);
  writer.open();
  if (const save_result result = writer.save(position_); result.error != 0)
    throw failure(exit_disk, save_problem(result, folder, position_.step));
}

// A result takes the place of no device, pipe, or file of the model or a run.
void library_instance::check_result(const std::string &path) const {
  check_output_path(path, {own_path(own_parameters), own_path(own_template)},
                    "is a file of the model", "the call");
}

void library_instance::save_state_dict(const std::string &path) {
  check_result(path);
  output_file file(path);
  with_parameters([&](const arenas &places) {
    write_state_dict(program_, places, file, [&](const std::string &text) { warn(text); });
  });
  file.publish();
}

void library_instance::save_gradients(const std::string &path) {
  check_values(library_kind::gradient);
  std::vector<std::vector<char>> copies; // on the host, and of the mean loss
  std::vector<tensor_view> gradients;
  for (const tensor_view &own : tensors(library_kind::gradient)) {
    copies.emplace_back(static_cast<size_t>(own.bytes));
    read(library_kind::gradient, own, copies.back().data());
    gradients.push_back(own);
    gradients.back().data = copies.back().data();
  }
  check_result(path);
  output_file file(path);
  write_module_tensors(program_, gradients, file, [&](const std::string &text) { warn(text); });
  file.publish();
}

void library_instance::save_optimizer_state(const std::string &path) {
  check_trains("save_optimizer_state");
  check_result(path);
  output_file file(path);
  with_states([&](const std::vector<tensor_view> &states) {
    write_optimizer_state(program_, states, position_.step - position_.skipped_steps, file,
                          [&](const std::string &text) { warn(text); });
  });
  file.publish();
}

void library_instance::load_state_dict(const std::string &path) {
  or_as_before([&] {
    read_weights(program_, target_.places(), target_, path,
                 [&](const std::string &text) { warn(text); });
  });
  done_ = 0;
}

void library_instance::load_optimizer_state(const std::string &path) {
  check_trains("load_optimizer_state");
  with_states([&](const std::vector<tensor_view> &states) {
    position_.step = position_.skipped_steps + read_optimizer_state(program_, states, path);
  });
  done_ = 0;
}

void library_instance::export_model(const std::string &path) {
  check_result(path);
  with_parameters([&](const arenas &places) {
    warn_of_range(program_, places, [&](const std::string &text) { warn(text); });
    export_onnx(program_, places, own_path(own_template), path, /*external_data=*/false,
                real_file_operations());
  });
}

} // namespace trainc
