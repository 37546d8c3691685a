// SPDX-License-Identifier: Apache-2.0
//
// What a row of the option table is. From the rows come the parser, the help pages, the options
// that a run prints at its start and its configuration.
#pragma once

#include "runtime/options/option_values.h"
#include "runtime/options/options.h"
#include "runtime/words.h"

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
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

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr double any_count = 1e15; // exactly representable, more than any run takes
constexpr double most_micro_batches = 65536;

struct option_row {
  std::string name;        // without dashes
  std::string placeholder; // of the value
  unsigned commands;       // that take it
  std::string help;
  char letter = 0;                       // short form, 0: none
  std::string choices = {};              // "a|b|c", empty: any text of the value's type
  bool is_flag = false, is_list = false; // a list grows each time that the option is given
  bool is_kept = true;                   // with the run; else it is of one start of the program
  bool is_shared = true;                 // ranks of a job must not differ in it
  value_range range = {0, any_count};
  // Says what is wrong with the text, or takes it over.
  std::function<std::string(const std::string &text, value_range, trainer_options &)> read = {};
  // As `read` takes it: several for a list, one for all others (empty: there is no value).
  std::function<std::vector<std::string>(const trainer_options &)> texts = {};

  option_row &&short_form(char c) && { return letter = c, std::move(*this); }
  option_row &&at_least(double least) && { return range.least = least, std::move(*this); }
  option_row &&between(double least, double most) && {
    return range = {least, most}, std::move(*this);
  }
  option_row &&within(value_range values) && { return range = values, std::move(*this); }
  option_row &&below(double limit) && {
    return range.limit = limit, range.may_be_limit = false, std::move(*this);
  }
  option_row &&of_one_start() && { return is_kept = false, std::move(*this); }
  option_row &&of_one_rank() && { return is_shared = false, std::move(*this); }
};

// `place` is the member of trainer_options, or a function that gives it.
template <typename Place>
option_row row(std::string name, Place place, std::string placeholder, unsigned commands,
               std::string help) {
  using type = std::remove_cvref_t<std::invoke_result_t<Place, trainer_options &>>;
  constexpr bool is_list = std::is_same_v<type, std::vector<std::string>>;
  option_row result = {std::move(name), std::move(placeholder), commands, std::move(help)};
  result.is_flag = std::is_same_v<type, bool>;
  result.is_list = is_list;
  result.read = [=](const std::string &text, value_range range, trainer_options &options) {
    return read_value(text, range, std::invoke(place, options));
  };
  result.texts = [=](const trainer_options &options) {
    if constexpr (is_list)
      return std::invoke(place, options);
    else
      return std::vector<std::string>{text_of(std::invoke(place, options))};
  };
  return result;
}

// A choice among words.
template <typename Place, typename T, size_t count>
option_row row(std::string name, Place place, const word_row<T> (&words)[count],
               std::string placeholder, unsigned commands, std::string help) {
  option_row result = {std::move(name), std::move(placeholder), commands, std::move(help)};
  for (const word_row<T> &word : words)
    result.choices += (result.choices.empty() ? "" : "|") + std::string(word.word);
  result.read = [place, &words, choices = result.choices](const std::string &text, value_range,
                                                          trainer_options &options) {
    const std::optional<T> value = value_of(words, text);
    if (!value)
      return "'" + text + "' is none of " + choices;
    std::invoke(place, options) = *value;
    return std::string();
  };
  result.texts = [place, &words](const trainer_options &options) {
    return std::vector<std::string>{word_of<T>(words, std::invoke(place, options))};
  };
  return result;
}

std::span<const command_row> all_commands();
std::vector<option_row> common_rows();
std::vector<option_row> loss_scale_rows(); // of programs that scale their gradients
std::vector<option_row> cpu_rows();        // of trainers for the CPU
std::vector<option_row> cuda_rows();       // of trainers for CUDA

} // namespace trainc
