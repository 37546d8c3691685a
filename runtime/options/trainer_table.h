// SPDX-License-Identifier: Apache-2.0
//
// The command line of a trainer: its commands, and the options of each. The rows are in
// trainer_rows.cpp; the optimizer's hyperparameters join them from the compiled program.
#pragma once

#include "runtime/options/option_table.h"
#include "runtime/options/options.h"
#include "runtime/program.h"

#include <span>
#include <string>
#include <vector>

namespace trainc {

enum command_bit : unsigned {
  command_train = 1,
  command_evaluate = 2,
  command_gradients = 4,
  command_export = 8,
  command_generate = 16,
  command_info = 32,
  command_predict = 64,
  command_checkpoints = 128,
  command_profile = 256,
};

constexpr unsigned computing_commands =
    ~unsigned(command_info | command_export | command_checkpoints);

struct command_row {
  command_bit bit;
  const char *name;
  const char *summary;
  const char *description;  // paragraphs for `<command> --help`
  const char *example;      // arguments
  const char *actions = ""; // "a|b": the word that follows the command; empty: none does
};

constexpr double most_micro_batches = 65536;
constexpr int most_threads = 4096; // of a rank

std::span<const command_row> all_commands();
// Of every trainer, of programs that scale their gradients, of trainers for the CPU and for CUDA.
std::vector<option_row> common_rows(), loss_scale_rows(), cpu_rows(), cuda_rows();

std::string read_value(const std::string &text, value_range range, period &value);
std::string read_value(const std::string &text, value_range range, step_range &value);
std::string text_of(const period &value);
std::string text_of(const step_range &value);

// Of a table that people read: name and value.
using table_rows = std::vector<std::pair<std::string, std::string>>;

class trainer_table : public option_table {
public:
  explicit trainer_table(const program &program);

  // Throws `failure` (exit_usage) with every problem of the line.
  trainer_options parse(int count, const char *const *arguments) const;
  // Options that contradict each other or have no effect; throws `failure` (exit_usage) with all.
  void check(const trainer_options &options) const;

  std::string version() const;  // `--version`
  std::string overview() const; // `help`
  // `<command> --help`, of a group of options, of `all`, or of those that most people use.
  std::string help_of(const command_row &row, const std::string &which = "all") const;

  // Name and value of the options of the command for which `is_wanted`, in table order.
  using filter = std::function<bool(const option_row &)>;
  table_rows values(
      const trainer_options &options,
      const filter &is_wanted = [](const option_row &) { return true; }) const;
  const trainer_options &defaults() const { return defaults_; }
  // Whether it has another value than by default.
  bool is_changed(const option_row &option, const trainer_options &options) const;
  // Options of the command that belong to a run and are kept with it.
  std::vector<const option_row *> of_run(const command_row &command) const;
  // The option's values as a configuration keeps them: files by their whole path.
  std::vector<std::string> kept_values(const option_row &option,
                                       const trainer_options &options) const;

private:
  void add_program_rows();
  const command_row &known(const std::string &word) const;
  // `train, evaluate, ...`: the commands that the program can do.
  std::string command_list() const;
  std::string said(const option_problem &problem, const command_row &command) const;
  std::string options_of_one_start() const; // of `train`

  const program &program_;
  unsigned commands_; // bits
  trainer_options defaults_;
};

// The hyperparameter's option: underscores become dashes.
std::string option_name(const hyperparameter &value);

} // namespace trainc
