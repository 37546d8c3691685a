// SPDX-License-Identifier: Apache-2.0
//
// The command line of a trainer: what the rows of the option table come to. The optimizer's
// hyperparameters join them from the compiled program.
#pragma once

#include "runtime/options/option_rows.h"
#include "runtime/program.h"

#include <map>
#include <string>
#include <vector>

namespace trainc {

class problem_list;

// A value on the command line that differs from the one it overrides.
struct changed_option {
  std::string name;
  std::vector<std::string> before, now;
};

class option_table {
public:
  explicit option_table(const program &program);

  // Throws `failure` (exit_usage) with every problem of the line.
  trainer_options parse(int count, const char *const *arguments) const;

  std::string version() const;                       // `--version`
  std::string overview() const;                      // `help`
  std::string help_of(const command_row &row) const; // `<command> --help`
  // Name and value of every option of the command, in table order.
  std::vector<std::pair<std::string, std::string>> values(const trainer_options &options) const;
  // Of those, what is not the default.
  std::vector<std::pair<std::string, std::string>>
  changed_values(const trainer_options &options) const;
  // Of those in which ranks of a job must not differ.
  std::vector<std::pair<std::string, std::string>>
  shared_values(const trainer_options &options) const;
  // Options of the command that belong to a run and are kept with it.
  std::vector<const option_row *> of_run(const command_row &command) const;
  // The option's values as a configuration keeps them: files by their whole path.
  std::vector<std::string> kept_values(const option_row &option,
                                       const trainer_options &options) const;
  // Takes the values of a configuration for options that the command line leaves open;
  // returns those that it changes. `source` names the configuration in problems.
  std::vector<changed_option> restore(std::map<std::string, std::vector<std::string>> configuration,
                                      const std::string &source, trainer_options &options,
                                      problem_list &problems) const;

private:
  const option_row *find(const std::string &name, unsigned commands) const;
  std::string nearest(const std::string &name, unsigned commands) const;
  const option_row *named_by(const std::string &argument, const command_row &command,
                             std::string &problem) const;
  const command_row &known(const std::string &word) const;
  // `train, evaluate, ...`: the commands that the program can do.
  std::string command_list() const;
  std::string options_of_one_start() const; // of `train`

  // Takes the text over, or says what is wrong with it.
  std::string read(const option_row &option, const std::string &text,
                   trainer_options &options) const;

  const program &program_;
  unsigned commands_; // bits
  trainer_options defaults_;
  std::vector<option_row> rows_;
};

// The hyperparameter's option: underscores become dashes.
std::string option_name(const hyperparameter &value);

} // namespace trainc
