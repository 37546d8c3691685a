// SPDX-License-Identifier: Apache-2.0
//
// The main of every trainer.
#include "runtime/commands/commands.h"
#include "runtime/commands/export.h"
#include "runtime/files/output_file.h"
#include "runtime/files/own_files.h"
#include "runtime/files/run_place.h"
#include "runtime/options/run_configuration.h"
#include "runtime/process/cpu_check.h"
#include "runtime/process/host_memory.h"
#include "runtime/process/signals.h"
#include "runtime/process/standard_output.h"
#include "runtime/ranks/launcher.h"
#include "runtime/run/agreement.h"
#include "runtime/run/host_folders.h"
#include "runtime/run/input_files.h"
#include "runtime/run/run_choice.h"
#include "runtime/run/threads.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

namespace trainc {

namespace {

// Before MPI is up: messages about the command line come from one rank.
bool is_first_by_environment() { return find_launch().rank == 0; }

int report(const failure &error) {
  if (!error.message.empty())
    fprintf(stderr, "%s\n", error.message.c_str());
  return error.code;
}

int dispatch(run &run) {
  switch (run.options.command->bit) {
  case command_train:
    return train(run);
  case command_evaluate:
    return evaluate(run);
  case command_gradients:
    return gradients(run);
  case command_predict:
    return predict(run);
  case command_export:
    return export_model(run);
  case command_generate:
    return generate(run);
  case command_checkpoints:
    return checkpoints(run);
  case command_profile:
    return profile(run);
  case command_info:
    return info(run);
  }
  return exit_internal;
}

constexpr unsigned reads_run = command_gradients | command_predict | command_export;

std::string read_by(const std::string &option) {
  return std::string(read_by_command) + " (" + option + ")";
}

std::vector<result_file> results_of_profile(const trainer_options &options) {
  std::vector<result_file> files;
  for (const result_file &file :
       {result_file{options.output, "-o"}, result_file{options.trace, "--trace"}})
    if (!file.path.empty())
      files.push_back(file);
  if (files.size() == 2 && options.output == options.trace)
    throw failure(exit_usage, "option --trace: " + options.trace +
                                  " is written by -o too\n  try: another name");
  return files;
}

void check_output(const trainer_table &table, const trainer_options &options) {
  std::vector<result_file> written = {{options.output, "-o"}};
  if (options.command->bit & command_export)
    written = results_of_export(trainer_program, options);
  else if (options.command->bit & command_profile)
    written = results_of_profile(options);
  else if (options.command->bit & command_train)
    written = {{options.profile_file, "--profile-file"}};
  else if (options.output.empty())
    throw failure(exit_usage,
                  std::string(options.command->name) + ": no file to write\n  try: -o FILE");
  const std::vector<input_file_name> inputs = input_files_of(trainer_program, table, options);
  std::string configuration; // of the run that is read, where there is something to take care of
  for (const result_file &file : written)
    if (can_replace(file.path) && (options.command->bit & reads_run))
      configuration = configuration_to_read(trainer_program, options);
  std::vector<input_file_name> of_run;
  if (!configuration.empty())
    try {
      of_run = input_files_of(trainer_program, read_configuration(configuration));
    } catch (const failure &error) { // one that is damaged hinders no result
      if (is_first_by_environment())
        fprintf(stderr, "warning: %s\n", error.message.c_str());
    }
  for (const auto &[file, named_by] : written) {
    for (const auto &[input, option] : inputs)
      check_output_path(file, {input}, read_by(option).c_str(), named_by);
    for (const auto &[input, option] : of_run)
      check_output_path(file, {input},
                        ("is what " + option + " of " + configuration + " names").c_str(),
                        named_by);
    check_output_path(file, own_files(options.frozen_data), "is a file of this trainer", named_by);
  }
}

// A run that begins has no file yet that would tell whose they are.
void check_outside_run(const trainer_options &options, std::string folder) {
  if (folder.empty())
    folder = next_run(trainer_program);
  if (!options.profile_file.empty() && belongs_to_run(options.profile_file, folder))
    throw failure(exit_usage, options.profile_file + ": belongs to the run, " + folder +
                                  "\n  try: --profile-file with another file, or without it");
  if (!options.watch_folder.empty() && is_taken_by_run(options.watch_folder, folder))
    throw failure(exit_usage, "option --watch-folder: " + options.watch_folder +
                                  " is a folder of a run, which has something else there\n  try: "
                                  "another folder, or the command without it");
}

// The file of chosen algorithms is replaced, too.
void check_remembered_products(const trainer_table &table, const trainer_options &options) {
  const std::string &path = options.product_choices;
  std::error_code ignored;
  if (path.empty())
    return;
  for (const auto &[input, option] : input_files_of(trainer_program, table, options))
    if (std::filesystem::equivalent(path, input, ignored))
      throw failure(exit_usage, path + ": " + read_by(option) +
                                    ", and chosen algorithms would take its place\n  try: "
                                    "--product-choices with another file");
}

// What the command line lacks: an error, or the options of a configuration or of the run to resume.
// `speaks`: of the first rank.
void complete_options(const trainer_table &table, trainer_options &options, bool speaks) {
  if (options.command->bit & reads_run ||
      (options.command->bit & command_profile && !results_of_profile(options).empty()))
    check_output(table, options);
  if (options.command->bit != command_train)
    return;
  const run_choice choice = choose_run(trainer_program, options);
  std::string configuration = choice.configuration();
  const bool goes_on = !configuration.empty();
  if (goes_on && options.resume != "auto" && !options.config.empty())
    throw failure(exit_usage, "option --config: a resumed run has its own configuration\n  try: "
                              "--resume without --config, or --resume auto, with which the file "
                              "counts where the run begins");
  if (goes_on && !options.config.empty())
    for (const std::string &note :
         check_agrees(trainer_program, options.config, configuration, table, options))
      if (speaks)
        fprintf(stderr, "warning: %s\n", note.c_str());
  if (!goes_on)
    configuration = options.config;
  if (!configuration.empty())
    for (const std::string &change :
         restore_options(trainer_program, read_configuration(configuration), table, options))
      if (goes_on && speaks)
        fprintf(stderr, "changed from %s: %s\n", configuration.c_str(), change.c_str());
  check_can_be_kept(table, options);
  if (!options.profile_file.empty())
    check_output(table, options);
  check_outside_run(options, choice.folder);
}

trainer_options parse(const trainer_table &table, int count, char **arguments) {
  trainer_options options = table.parse(count - 1, arguments + 1);
  options.words.assign(arguments, arguments + count);
  return options;
}

int print_help(const trainer_table &table, const trainer_options &options) {
  fputs((options.wants_version ? table.version()
         : options.command     ? table.help_of(*options.command, options.help_of)
                               : table.overview())
            .c_str(),
        stdout);
  return finish_standard_output(exit_success, "");
}

// Whether no rank can wait for this one.
bool is_alone() {
  const launch launch = find_launch();
  return !launch.started || !launch.problem.empty() || launch.size == 1;
}

void check_cpu(const program &program) {
  std::string missing;
  if (!cpu_supports(program.march, &missing))
    throw failure(exit_machine,
                  std::string("this trainer was built for ") + program.march + "; this CPU lacks " +
                      missing +
                      "\n  try: trainc --march x86-64-v3, or compiling the model on this machine");
}

// Before any other thread is there.
void prepare_process(const trainer_options &options) {
  if (!(options.command->bit & computing_commands))
    return;
  check_cpu(trainer_program);
  keep_freed_memory();
  if (strcmp(trainer_program.target, "cpu") == 0)
    widen_affinity(static_cast<int>(options.threads.value_or(0)));
}

int run_command(const trainer_table &table, trainer_options &options,
                const std::optional<failure> &problem, communicator &ranks) {
  ranks.together([&] {
    if (problem)
      throw *problem;
  });
  refuse_differences(ranks, {{"option --help", options.wants_help ? "yes" : "no", ""}}, exit_usage);
  if (options.wants_help)
    return ranks.rank() == 0 ? print_help(table, options) : exit_success;
  refuse_differences(ranks, properties_of_start(trainer_program, table, options), exit_usage);
  std::optional<shared_configuration> shared;
  if (options.command->bit == command_train)
    shared.emplace(ranks, trainer_program, options);
  ranks.together([&] {
    complete_options(table, options, /*speaks=*/ranks.rank() == 0);
    check_remembered_products(table, options);
  });
  refuse_differences(ranks, properties_of_start(trainer_program, table, options), exit_usage);
  bool computes = options.command->bit & computing_commands;
  watchdog watch(ranks, computes, computes ? options.hang_timeout : 0);
  ranks.end_start();
  // Inside, so that MPI is still up: an error that the other ranks do not share ends them too.
  const int code = watch.supervise([&] {
    run run(trainer_program, table, options, ranks, watch);
    int code = dispatch(run);
    // The result of training is its run, which is whole.
    return options.command->bit == command_train ? code : finish_standard_output(code, "");
  });
  if (options.command->bit == command_train) // in others the first rank may work alone
    ranks.begin_end();
  return code;
}

int trainer_main(int count, char **arguments) {
  trainer_table table(trainer_program);
  trainer_options options;
  std::optional<failure> problem;
  try {
    options = parse(table, count, arguments);
    if (options.wants_help && is_alone())
      return print_help(table, options);
    if (!options.wants_help)
      prepare_process(options);
  } catch (const failure &error) {
    problem = error; // perhaps of this rank alone
  }
  try {
    watch_signals(!problem && !options.wants_help && options.command->bit == command_train);
    communicator ranks(options.hang_timeout);
    try {
      return run_command(table, options, problem, ranks);
    } catch (const std::exception &error) {
      // While MPI is up: no rank ends before the one that knows the reason has said it, or a
      // launcher could end that one too.
      return report(as_failure(error));
    }
  } catch (const std::exception &error) { // there are no ranks yet
    if (!problem && options.wants_help)
      return is_first_by_environment() ? print_help(table, options) : exit_success;
    return report(as_failure(error));
  }
}

} // namespace
} // namespace trainc

int main(int count, char **arguments) { return trainc::trainer_main(count, arguments); }
