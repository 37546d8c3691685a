// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/option_table.h"

#include "runtime/failure.h"

#include <algorithm>
#include <sstream>

namespace trainc {
namespace {

constexpr size_t page_width = 100, help_column = 32;

int edit_distance(const std::string &a, const std::string &b) {
  std::vector<int> previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j)
      current[j] = std::min(
          {previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// Words, and the parts of choices such as `a|b|c`.
std::vector<std::string> pieces_of(const std::string &text) {
  std::vector<std::string> pieces(1);
  for (char c : text) {
    if (c != ' ' && c != '\n')
      pieces.back() += c;
    const bool ends = c == ' ' || c == '\n' || (c == '|' && pieces.back().size() > 1);
    if (c != '|' && ends && !pieces.back().empty())
      pieces.back() += ' ';
    if (ends && !pieces.back().empty())
      pieces.emplace_back();
  }
  return pieces;
}

// Begins a new line before a piece that would be too long for this one.
std::string wrapped(const std::string &text, size_t column) {
  std::string result, line;
  for (const std::string &piece : pieces_of(text)) {
    const size_t length = piece.ends_with(' ') ? piece.size() - 1 : piece.size();
    if (!line.empty() && column + line.size() + length > page_width) {
      result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n" + std::string(column, ' ');
      line.clear();
    }
    line += piece;
  }
  return result + line.substr(0, line.find_last_not_of(' ') + 1);
}

// Up to the first semicolon that is in no parentheses.
std::string first_part_of(const std::string &text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] == ';' && depth == 0)
      return text.substr(0, i);
  }
  return text;
}

// With a star at the beginning or the end for anything.
bool fits(const std::string &pattern, const std::string &text) {
  if (pattern.starts_with("*"))
    return text.ends_with(pattern.substr(1));
  if (pattern.ends_with("*"))
    return text.starts_with(pattern.substr(0, pattern.size() - 1));
  return text == pattern;
}

bool fits_one_of(const std::string &patterns, const std::string &text) {
  std::istringstream all(patterns);
  for (std::string pattern; std::getline(all, pattern, '|');)
    if (fits(pattern, text))
      return true;
  return false;
}

// The option that a term is about.
std::string named_by(const std::string &term) {
  const size_t begin = term[0] == '!' ? 1 : 0;
  return term.substr(begin, term.find_first_of("!= ", begin) - begin);
}

option_problem problem_of(const std::string &option, const std::string &text) {
  constexpr const char *advice = "\n  try: ";
  const size_t at = text.find(advice);
  return {option, text.substr(0, at),
          at == std::string::npos ? "" : text.substr(at + std::string(advice).size())};
}

} // namespace

std::string with_dashes(const std::string &name) { return (name.size() == 1 ? "-" : "--") + name; }

bool is_choice(const std::string &choices, const std::string &word) {
  return !word.empty() && word.find('|') == std::string::npos &&
         ("|" + choices + "|").find("|" + word + "|") != std::string::npos;
}

bool option_row::has(const std::string &text) const {
  return !text.empty() && (counts_as_it_is || !is_choice("no|none|0|0min|0epochs|inf", text));
}

const option_row *option_table::find(const std::string &name, unsigned commands) const {
  for (const option_row &option : rows_)
    if ((option.commands & commands) &&
        (option.name == name || (name.size() == 1 && option.letter == name[0])))
      return &option;
  return nullptr;
}

std::string option_table::nearest(const std::string &name, unsigned commands) const {
  std::string best = "help";
  int distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const option_row &option : rows_)
    if (option.commands & commands)
      if (int edits = edit_distance(name, option.name); edits < distance) {
        distance = edits;
        best = option.name;
      }
  return with_dashes(best);
}

namespace {

// The words of a command line, one after the other.
class line_reader {
public:
  line_reader(const option_table &table, int count, const char *const *arguments, void *values,
              unsigned commands)
      : table_(table), arguments_(arguments, arguments + count), values_(values),
        commands_(commands) {}

  command_line read() {
    for (bool are_words = false; next_ < arguments_.size();) {
      const std::string word = arguments_[next_++];
      if (are_words || word.size() < 2 || word[0] != '-')
        line_.words.push_back(word);
      else if (word == "--")
        are_words = true;
      else
        read_option(word);
    }
    return std::move(line_);
  }

private:
  // Words that are options end a value that is not there.
  bool is_option(const std::string &word) const {
    const std::string name = name_of(word);
    return word.size() > 1 && word[0] == '-' && (table_.find(name, commands_) || is_page(name));
  }
  static std::string name_of(const std::string &word) {
    const size_t begin = std::min(word.find_first_not_of('-'), word.size());
    return word.substr(begin, word.find('=') - begin);
  }
  static bool is_page(const std::string &name) { return is_choice("h|help|version", name); }

  void complain(const std::string &option, const std::string &message, const std::string &advice) {
    line_.problems.push_back({option, message, advice});
  }

  void read_option(const std::string &word) {
    const std::string name = name_of(word);
    const size_t equals = word.find('=');
    const bool is_alone = equals == std::string::npos;
    const std::string value = is_alone ? "" : word.substr(equals + 1);
    if (is_page(name))
      return read_page(name, is_alone, value);
    const option_row *option = table_.find(name, commands_);
    if (!option) {
      line_.problems.push_back(
          {word.substr(0, equals), "unknown option", table_.nearest(name, commands_), true});
      // What follows an unknown option is most likely its value.
      if (is_alone && next_ < arguments_.size() && arguments_[next_][0] != '-')
        ++next_;
      return;
    }
    const std::string written = with_dashes(option->name);
    if (!line_.given.insert(option->name).second && !option->is_list)
      complain(written, "is given twice", "one of the two");
    if (is_alone && option->is_flag)
      return take(*option, "yes");
    if (is_alone && option->may_lack_value)
      return take(*option, option->choices.substr(0, option->choices.find('|')));
    if (option->is_flag && !is_choice("yes|no", value))
      return complain(written, "takes no value, found '" + value + "'", written);
    if (!is_alone)
      return take(*option, value);
    const bool follows = next_ < arguments_.size();
    if (!follows || is_option(arguments_[next_]))
      return complain(written,
                      follows ? "has no value: the option '" + arguments_[next_] + "' follows"
                              : "has no value",
                      written + "=" + option->placeholder);
    take(*option, arguments_[next_++]);
  }

  void take(const option_row &option, const std::string &text) {
    if (text.empty())
      return complain(with_dashes(option.name), "its value is empty", "the command without it");
    if (const std::string problem = option.read(text, option.range, values_); !problem.empty())
      line_.problems.push_back(problem_of(with_dashes(option.name), problem));
  }

  void read_page(const std::string &name, bool is_alone, const std::string &value) {
    if (!is_alone)
      return complain("--" + name, "takes no value, found '" + value + "'", "--" + name);
    (name == "version" ? line_.wants_version : line_.wants_help) = true;
    if (next_ < arguments_.size() &&
        (arguments_[next_] == "all" ||
         std::any_of(table_.groups().begin(), table_.groups().end(),
                     [&](const option_group &group) { return group.name == arguments_[next_]; })))
      line_.help_of = arguments_[next_++];
  }

  const option_table &table_;
  const std::vector<std::string> arguments_;
  void *const values_;
  const unsigned commands_;
  size_t next_ = 0;
  command_line line_;
};

} // namespace

command_line option_table::parse(int count, const char *const *arguments, void *values,
                                 unsigned commands) const {
  return line_reader(*this, count, arguments, values, commands).read();
}

command_line option_table::parse_alone(int count, const char *const *arguments, void *values,
                                       unsigned commands) const {
  command_line line = parse(count, arguments, values, commands);
  if (line.wants_help || line.wants_version)
    line.problems.push_back({line.wants_help ? "--help" : "--version", "stands alone",
                             "the command without the other words"});
  return line;
}

bool option_table::holds(const std::string &when, const void *values, unsigned commands) const {
  std::istringstream terms(when);
  for (std::string term; terms >> term;) {
    const std::string name = named_by(term);
    const option_row *option = find(name, commands);
    std::vector<std::string> texts = option ? option->texts(values) : std::vector<std::string>();
    if (texts.empty())
      texts = {""};
    const size_t equals = term.find('=');
    const bool denies = term[0] == '!' || (equals != std::string::npos && term[equals - 1] == '!');
    const bool is_so = std::any_of(texts.begin(), texts.end(), [&](const std::string &text) {
      return equals == std::string::npos ? option && option->has(text)
                                         : fits_one_of(term.substr(equals + 1), text);
    });
    if (is_so == denies)
      return false;
  }
  return true;
}

std::string option_table::filled(std::string message, const void *values, unsigned commands) const {
  size_t end;
  for (size_t begin = 0; (begin = message.find('{', begin)) != std::string::npos &&
                         (end = message.find('}', begin)) != std::string::npos;) {
    const option_row *option = find(message.substr(begin + 1, end - begin - 1), commands);
    const std::string text = option ? joined(option->texts(values)) : "";
    message.replace(begin, end - begin + 1, text);
    begin += text.size(); // a value may have braces of its own
  }
  return message;
}

std::vector<option_problem> option_table::refused(const void *values, const asked &is_asked,
                                                  unsigned commands) const {
  std::vector<option_problem> problems;
  for (const option_row &option : rows_) {
    bool is_idle = false;
    for (const option_condition &condition : option.conditions) {
      if (!(option.commands & commands) || (condition.is_idle && is_idle) ||
          !holds(condition.when, values, commands))
        continue;
      if (condition.is_idle && !is_asked(option.name, named_by(condition.when)))
        continue;
      is_idle |= condition.is_idle;
      option_problem problem = {with_dashes(option.name),
                                filled(condition.message, values, commands),
                                filled(condition.advice, values, commands)};
      // Several reasons may have one message.
      if (problems.empty() || problems.back().option != problem.option ||
          problems.back().message != problem.message)
        problems.push_back(std::move(problem));
    }
  }
  return problems;
}

std::string option_table::help(const std::string &which, const void *defaults, unsigned commands,
                               const std::string &call) const {
  std::string text, names;
  for (const option_group &group : groups_) {
    std::string entries;
    bool is_there = false;
    for (const option_row &option : rows_) {
      if (!(option.commands & commands) || option.group != group.name)
        continue;
      is_there = true;
      if (which.empty() ? !option.is_usual : which != "all" && which != group.name)
        continue;
      std::string left = "  " + with_dashes(option.name);
      if (option.letter)
        left = std::string("  -") + option.letter + ", --" + option.name;
      if (!option.is_flag)
        left += option.may_lack_value ? "[=" + option.placeholder + "]" : " " + option.placeholder;
      std::string right = which.empty() ? first_part_of(option.help) : option.help;
      if (!option.choices.empty() && option.choices != option.placeholder)
        right += ": " + option.choices;
      const std::string value = without_controls(joined(option.texts(defaults)));
      if (!option.is_flag && !value.empty())
        right += " (default " + value + ")";
      left += left.size() >= help_column - 1 ? "\n" + std::string(help_column, ' ')
                                             : std::string(help_column - left.size(), ' ');
      entries += left + wrapped(right, help_column) + "\n";
    }
    if (!entries.empty())
      text += group.title + ":\n" + entries + "\n";
    if (is_there)
      names += (names.empty() ? "" : "|") + group.name;
  }
  if (which.empty() && !names.empty())
    text += "`" + call + " all` has every option, `" + call + " GROUP` those of one group:\n" +
            wrapped("  " + names, 2) + "\n";
  return text;
}

} // namespace trainc
