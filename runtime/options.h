// SPDX-License-Identifier: Apache-2.0
//
// The command line of a trainer. One table of options makes the parser, the
// help pages and the rows that a run prints at its start; the optimizer's
// hyperparameters join it from the compiled program.
#pragma once

#include "runtime/checkpoint_policy.h"
#include "runtime/program.h"

#include <map>
#include <string>
#include <vector>

namespace trainc {

class problem_list;

enum command_bit : unsigned {
  command_train = 1,
  command_evaluate = 2,
  command_gradients = 4,
  command_export = 8,
  command_generate = 16,
  command_info = 32,
  command_predict = 64,
  command_checkpoints = 128,
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

// A list is of NAME=FILE, files are of FILE or FILE:WEIGHT; both may be given again and again.
enum class option_kind { flag, integer, real, text, list, files, period };

constexpr bool repeats(option_kind kind) {
  return kind == option_kind::list || kind == option_kind::files;
}

struct option_row {
  std::string name; // without dashes
  char letter;      // short form, 0: none
  option_kind kind;
  std::string placeholder;
  std::string default_value; // as it would be given; empty: none
  std::string help;
  unsigned commands;
  double minimum, maximum; // of numbers
  std::string choices;     // "a|b|c", empty: any text
  bool of_start = false;   // belongs to one start of the program, not to the run
};

// A value on the command line that differs from the one it overrides.
struct changed_option {
  std::string name;
  std::vector<std::string> before, now;
};

// What a command line says: a value, the one of a configuration, or the default for
// every option of its command. Getters expect a name of the table and the right kind.
class settings {
public:
  const command_row *command = nullptr;
  bool wants_help = false;

  const std::string &action() const { return action_; } // of the command's
  bool given(const std::string &name) const { return given_.count(name) != 0; }
  bool has(const std::string &name) const { return !text(name).empty(); }
  const std::string &text(const std::string &name) const;
  int64_t integer(const std::string &name) const;
  double real(const std::string &name) const;
  bool flag(const std::string &name) const { return text(name) == "yes"; }
  period every(const std::string &name) const;
  std::vector<std::string> list(const std::string &name) const;

private:
  friend class option_table;
  const std::vector<std::string> *values(const std::string &name) const;
  std::map<std::string, std::vector<std::string>> given_, restored_;
  std::map<std::string, std::string> defaults_;
  std::string action_;
};

class option_table {
public:
  explicit option_table(const program &program);

  // Throws `failure` (exit_usage) with every problem of the line.
  settings parse(int count, const char *const *arguments) const;

  std::string overview() const;                      // `help`
  std::string help_of(const command_row &row) const; // `<command> --help`
  // Name and value of every option of the command, in table order.
  std::vector<std::pair<std::string, std::string>> values(const settings &settings) const;
  // The same without those that ranks of a job may have differently.
  std::vector<std::pair<std::string, std::string>> shared_values(const settings &settings) const;
  // Options of the command that belong to a run and are kept with it.
  std::vector<const option_row *> of_run(const command_row &command) const;
  // Takes the values of a configuration for options that the command line leaves open;
  // returns those that it changes. `source` names the configuration in problems.
  std::vector<changed_option> restore(std::map<std::string, std::vector<std::string>> configuration,
                                      const std::string &source, settings &settings,
                                      problem_list &problems) const;

private:
  const option_row *find(const std::string &name, unsigned commands) const;
  std::string nearest(const std::string &name, unsigned commands) const;

  const command_row *known(const std::string &word) const;
  // `train, evaluate, ...`: the commands that the program can do.
  std::string command_list() const;

  std::string model_name_;
  unsigned commands_; // bits
  std::vector<option_row> rows_;
};

// The option's values as a configuration keeps them: files by their whole path.
std::vector<std::string> kept_values(const option_row &option, std::vector<std::string> values);

// The hyperparameter's option: underscores become dashes.
std::string option_name(const hyperparameter &value);

} // namespace trainc
