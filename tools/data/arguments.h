// SPDX-License-Identifier: Apache-2.0
//
// The command line of trainc-data: a table of options for each command, which the one parser
// reads (runtime/options/option_table.h).
#pragma once

#include "runtime/options/option_table.h"

#include <map>
#include <string>
#include <vector>

namespace trainc::data {

class Arguments;

/// An option whose value stays text until its command reads it.
struct OptionRow : option_row {
  OptionRow(const std::string &name, const std::string &placeholder,
            const std::string &defaultValue, const std::string &help, bool repeats = false,
            const std::string &choices = "");

  OptionRow &&refusedWhen(const std::string &when, const std::string &message,
                          const std::string &advice) && {
    return conditions.push_back({when, message, advice, false}), std::move(*this);
  }
};

/// A finite decimal number that is the whole text; false of anything else.
bool toNumber(const std::string &text, double &value);

struct CommandRow {
  std::string name, summary, words, description, example;
  std::vector<OptionRow> options; // besides those of every command
  void (*run)(const Arguments &);
};

class Arguments {
public:
  std::vector<std::string> words; // what is not an option

  /// Value of an option of the command; the default where it is not given.
  const std::string &text(const std::string &name) const;
  bool has(const std::string &name) const { return !text(name).empty(); }
  const std::vector<std::string> &list(const std::string &name) const;
  /// Throw `failure` (exit_usage) for anything but a number within the bounds.
  double real(const std::string &name, double least, double most) const;
  int64_t integer(const std::string &name, int64_t least, int64_t most) const;
  /// Options that were not given have their defaults from here on.
  void complete(const option_table &table);

private:
  friend struct OptionRow;
  std::map<std::string, std::vector<std::string>> values_;
};

/// Words after the command's name. Throws `failure` (exit_usage) with every problem.
Arguments parseArguments(const CommandRow &command, int count, char **words);

/// The page of `trainc-data COMMAND --help`.
std::string helpOf(const CommandRow &command);

/// The numbers of a text such as 0.5,0.5,0.5. Throws `failure` (exit_usage) naming the option.
std::vector<double> numbersOf(const std::string &text, const std::string &option);

/// A text without and with its last part after the separator: name and value.
std::vector<std::string> splitAt(const std::string &text, char separator);

} // namespace trainc::data
