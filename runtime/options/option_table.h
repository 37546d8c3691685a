// SPDX-License-Identifier: Apache-2.0
//
// A table of options, as trainc, its tools and every trainer have one. A row says everything about
// an option: its name, value and range, the commands that take it, when it has no effect, and its
// help. The parser, the help pages, the documents and the checks are made from the rows.
#pragma once

#include "runtime/options/option_values.h"
#include "runtime/words.h"

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace trainc {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr double any_count = 1e15; // exactly representable, more than any run takes

// When an option is refused. `when` is a list of terms between blanks. All must hold. A term speaks
// of an option of the same table.
//
//   lora             the option has a value
//   !lora            the option has no value
//   target=cpu|cuda  its value is one of these; `aarch64*` and `*=frozen` are patterns
//   target!=cpu      its value is none of these
//
// no, none, 0 and inf count as no value, except of what may be absent. In the message, `{target}`
// stands for the value.
struct option_condition {
  std::string when, message, advice;
  // The option has no effect then: refused where somebody asks for it, whatever its value is. Else
  // the values contradict each other, whoever chose them.
  bool is_idle;
};

struct option_row {
  std::string name;                      // without dashes
  std::string placeholder;               // of the value
  unsigned commands;                     // that take it, bits
  std::string help;                      // up to the first semicolon on the short page
  std::string group = {};                // the word of --help
  bool is_usual = false;                 // on the short page, which has what most people use
  char letter = 0;                       // short form, 0: none
  std::string choices = {};              // "a|b|c", empty: any text of the value's type
  bool is_flag = false, is_list = false; // a list grows each time that the option is given
  bool may_lack_value = false;           // it is the first choice then
  bool counts_as_it_is = false;          // `0` and `none` are values like others: it may be absent
  bool is_kept = true;                   // with the run; else it is of one start of the program
  bool is_shared = true;                 // ranks of a job must not differ in it
  value_range range = {0, any_count};
  std::vector<option_condition> conditions = {};
  // Takes the text over into the values, or says what is wrong with it; the advice follows in a
  // line of its own (`with_advice`).
  std::function<std::string(const std::string &text, value_range, void *values)> read = {};
  // As `read` takes it: several for a list, one for all others (empty: there is no value).
  std::function<std::vector<std::string>(const void *values)> texts = {};

  // Whether this text of its value is one, for conditions.
  bool has(const std::string &text) const;

  option_row &&usual() && { return is_usual = true, std::move(*this); }
  option_row &&shown_as(std::string text) && {
    return placeholder = std::move(text), std::move(*this);
  }
  option_row &&optional_value() && { return may_lack_value = true, std::move(*this); }
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
  option_row &&idle(const std::string &when, const std::string &message,
                    const std::string &advice = "the command without it") && {
    return conditions.push_back({when, message, advice, true}), std::move(*this);
  }
  option_row &&idle(const std::vector<option_condition> &several) && {
    conditions.insert(conditions.end(), several.begin(), several.end());
    return std::move(*this);
  }
  option_row &&refused(const std::vector<std::string> &whens, const std::string &message,
                       const std::string &advice = "one of the two") && {
    for (const std::string &when : whens)
      conditions.push_back({when, message, advice, false});
    return std::move(*this);
  }
  // A text that the type admits may still be wrong: what is, empty if it is good.
  option_row &&checked(const std::function<std::string(const std::string &)> &check) && {
    read = [check, read = std::move(read)](const std::string &text, value_range range, void *to) {
      const std::string problem = check(text);
      return problem.empty() ? read(text, range, to) : problem;
    };
    return std::move(*this);
  }
};

template <typename T> inline constexpr bool is_optional = false;
template <typename T> inline constexpr bool is_optional<std::optional<T>> = true;

// `place` is the member of `Values`, or a function that gives it.
template <typename Values, typename Place>
option_row option_of(std::string name, Place place, std::string placeholder, unsigned commands,
                     std::string help) {
  using type = std::remove_cvref_t<std::invoke_result_t<Place, Values &>>;
  constexpr bool is_list = std::is_same_v<type, std::vector<std::string>>;
  option_row result = {std::move(name), std::move(placeholder), commands, std::move(help)};
  result.is_flag = std::is_same_v<type, bool>;
  result.is_list = is_list;
  result.counts_as_it_is = is_list || is_optional<type>;
  result.read = [=](const std::string &text, value_range range, void *values) {
    return read_value(text, range, std::invoke(place, *static_cast<Values *>(values)));
  };
  result.texts = [=](const void *values) {
    const type &value = std::invoke(place, *static_cast<const Values *>(values));
    if constexpr (is_list)
      return value;
    else
      return std::vector<std::string>{text_of(value)};
  };
  return result;
}

// A choice among words.
template <typename Values, typename Place, typename T, size_t count>
option_row option_of(std::string name, Place place, const word_row<T> (&words)[count],
                     std::string placeholder, unsigned commands, std::string help) {
  option_row result = {std::move(name), std::move(placeholder), commands, std::move(help)};
  for (const word_row<T> &word : words)
    result.choices += (result.choices.empty() ? "" : "|") + std::string(word.word);
  result.read = [place, &words, choices = result.choices](const std::string &text, value_range,
                                                          void *values) {
    const std::optional<T> value = value_of(words, text);
    if (!value)
      return "'" + text + "' is none of " + choices;
    std::invoke(place, *static_cast<Values *>(values)) = *value;
    return std::string();
  };
  result.texts = [place, &words](const void *values) {
    return std::vector<std::string>{
        word_of<T>(words, std::invoke(place, *static_cast<const Values *>(values)))};
  };
  return result;
}

struct option_problem {
  std::string option; // as it is written, with dashes
  std::string message, advice;
  bool is_unknown = false; // there is no such option
};

// What a command line has besides the values.
struct command_line {
  std::vector<std::string> words; // what is no option, nor the value of one
  std::set<std::string> given;
  std::vector<option_problem> problems;
  bool wants_help = false, wants_version = false;
  std::string help_of; // the word after --help: a group, or all
};

struct option_group {
  std::string name, title;
};

class option_table {
public:
  option_table() = default;
  option_table(std::vector<option_group> groups, std::vector<option_row> rows)
      : groups_(std::move(groups)), rows_(std::move(rows)) {}

  const std::vector<option_group> &groups() const { return groups_; }
  const std::vector<option_row> &rows() const { return rows_; }
  // Of one of the commands; null where there is none.
  const option_row *find(const std::string &name, unsigned commands = ~0u) const;
  // With dashes; `--help` where nothing is near.
  std::string nearest(const std::string &name, unsigned commands = ~0u) const;

  // Reads values into what `values` points to, which the rows are of.
  command_line parse(int count, const char *const *arguments, void *values,
                     unsigned commands = ~0u) const;
  // The same of a program whose pages are words of their own.
  command_line parse_alone(int count, const char *const *arguments, void *values,
                           unsigned commands = ~0u) const;
  // What the conditions refuse. `is_asked`: whether somebody asks for an option, which another one
  // may make idle.
  using asked = std::function<bool(const std::string &option, const std::string &other)>;
  std::vector<option_problem> refused(const void *values, const asked &is_asked,
                                      unsigned commands = ~0u) const;
  // The options of a help page, in groups: `which` is a group, `all`, or empty for those that most
  // people use. `defaults` are values.
  std::string help(const std::string &which, const void *defaults, unsigned commands = ~0u,
                   const std::string &call = "--help") const;

protected:
  std::vector<option_group> groups_;
  std::vector<option_row> rows_;

private:
  bool holds(const std::string &when, const void *values, unsigned commands) const;
  std::string filled(std::string message, const void *values, unsigned commands) const;
};

// As it stands on a command line: `-o`, `--steps`.
std::string with_dashes(const std::string &name);

// A message and, where it is not empty, its advice.
inline std::string with_advice(const std::string &message, const std::string &advice) {
  return advice.empty() ? message : message + "\n  try: " + advice;
}

// Whether `word` is one of "a|b|c".
bool is_choice(const std::string &choices, const std::string &word);

} // namespace trainc
