// SPDX-License-Identifier: Apache-2.0
#include "runtime/commands/export.h"
#include "runtime/commands/commands.h"

#include "runtime/checkpoint/adapters.h"
#include "runtime/checkpoint/onnx_export.h"
#include "runtime/checkpoint/state_dict.h"
#include "runtime/files/own_files.h"
#include "runtime/host_access.h"

#include <optional>

namespace trainc {

std::vector<result_file> results_of_export(const program &program, const trainer_options &options) {
  std::vector<result_file> results;
  if (!options.output.empty())
    for (const std::string &path : files_of_export(program, options.output, options.external_data))
      results.push_back({path, "-o"});
  else if (options.external_data)
    throw failure(exit_usage, "option --external-data: is of the ONNX file\n  try: with -o FILE");
  if (!options.state_dict.empty())
    results.push_back({options.state_dict, "--state-dict"});
  if (!options.optimizer_state.empty())
    results.push_back({options.optimizer_state, "--optimizer-state"});
  if (!options.adapter.empty() && program.adapters.empty())
    throw failure(exit_usage, "option --adapter: the program has none\n  try: trainc --lora");
  if (!options.adapter.empty())
    for (const char *name : {adapter_weights, adapter_configuration})
      results.push_back({options.adapter + "/" + name, "--adapter"});
  if (results.empty())
    throw failure(exit_usage, "export: no file to write\n  try: -o FILE, or --state-dict FILE");
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (results[i].path == results[j].path)
        throw failure(exit_usage, std::string("option ") + results[i].option + ": " +
                                      results[i].path + " is written by " + results[j].option +
                                      " too\n  try: another name");
  return results;
}

namespace {

struct optimizer_memory {
  std::vector<char> bytes;
  std::vector<tensor_view> states;
};

optimizer_memory load_optimizer(const program &program, const checkpoint_info &info) {
  optimizer_memory memory;
  memory.states = state_tensors(program);
  memory.states.erase(memory.states.begin(), memory.states.begin() + kept_parameters(program));
  int64_t bytes = 0;
  for (const tensor_view &state : memory.states)
    bytes += state.bytes;
  memory.bytes.resize(static_cast<size_t>(bytes));
  char *place = memory.bytes.data();
  for (tensor_view &state : memory.states) {
    state.data = place;
    place += state.bytes;
  }
  host_access access;
  load_tensors(info, memory.states, access);
  return memory;
}

void write_optimizer(const run &run, const std::string &checkpoint, output_file &file) {
  const checkpoint_info info = read_manifest(checkpoint);
  const optimizer_memory memory = load_optimizer(run.prog, info);
  write_optimizer_state(run.prog, memory.states, info.step - info.skipped_steps, file,
                        [&](const std::string &text) { run.warn(text); });
}

// All of them get their names together.
void write_for_torch(const run &run, const std::string &parameters) {
  std::vector<output_file *> files;
  std::optional<output_file> state, optimizer;
  if (const std::string &path = run.options.state_dict; !path.empty()) {
    files.push_back(&state.emplace(path));
    write_state_dict(run.prog, run.places(), *state,
                     [&](const std::string &text) { run.warn(text); });
  }
  if (const std::string &path = run.options.optimizer_state; !path.empty()) {
    files.push_back(&optimizer.emplace(path));
    write_optimizer(run, parameters, *optimizer);
  }
  if (!files.empty())
    publish_together(files);
}

void check_states(const run &run) {
  if (run.options.optimizer_state.empty())
    return;
  if (run.options.checkpoint == "initial" || run.prog.state_names.empty())
    throw failure(exit_usage, std::string("option --optimizer-state: ") +
                                  (run.prog.state_names.empty()
                                       ? "the program has no optimizer with states"
                                       : "initial parameters have no states beside them") +
                                  "\n  try: without it");
}

} // namespace

int export_model(run &run) {
  const trainer_options &options = run.options;
  run.ranks.together([&] { check_states(run); });
  run.target.allocate(memory_use::parameters, 1);
  const std::string parameters = run.load_chosen_parameters();
  run.ranks.together([&] {
    if (!run.is_first())
      return;
    write_for_torch(run, parameters);
    if (!options.adapter.empty()) {
      write_adapters(run.prog, run.places(), options.adapter);
      if (const auto nameless = adapters_without_module(run.prog); !nameless.empty())
        run.warn(options.adapter +
                 ": layers have names of the model's file, since the module's are "
                 "not known, and PEFT finds none of them: " +
                 first_of(nameless));
      if (const auto others = trained_beside_adapters(run.prog); !others.empty())
        run.warn(options.adapter + ": holds adapters alone, without what else was trained: " +
                 first_of(others) + "\n  try: --state-dict FILE too, which has all of it");
    }
    if (!options.output.empty()) {
      warn_of_range(run.prog, run.places(), [&](const std::string &text) { run.warn(text); });
      export_onnx(run.prog, run.places(), own_file(run.folder, own_template), options.output,
                  options.external_data, real_file_operations());
    }
    printf("parameters  %s\n", parameters.c_str());
    for (auto [what, path] :
         {std::pair("model", &options.output), std::pair("state dict", &options.state_dict),
          std::pair("optimizer", &options.optimizer_state), std::pair("adapter", &options.adapter)})
      if (!path->empty())
        printf("%-10s  %s\n", what, path->c_str());
  });
  return exit_success;
}

} // namespace trainc
