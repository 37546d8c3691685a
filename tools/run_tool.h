// SPDX-License-Identifier: Apache-2.0
//
// What tools do around their work: read the command line by one table of options, print the page of
// --help, and say what went wrong. Those that print to llvm::outs() watch it besides
// (compiler/standard_output.h).
#pragma once

#include "compiler/installation_paths.h"
#include "runtime/failure.h"
#include "runtime/options/option_table.h"
#include "runtime/process/standard_output.h"

namespace trainc::tools {

struct Tool {
  const char *name;
  std::string page; // of --help, above the options: a paragraph of usage, others
  std::vector<option_row> options;
  const char *subject = nullptr; // what the first word is; null: there may be none
  size_t mostWords = 1;
};

/// Of the command line besides the values of options.
struct ToolOptions {
  std::vector<std::string> words;
  std::set<std::string> given;

  std::string word(size_t number, const char *otherwise = "") const {
    return number < words.size() ? words[number] : otherwise;
  }
  bool has(const std::string &option) const { return given.count(option) > 0; }
};

/// With a placeholder such as `a|b|c` it is one of the words.
template <typename Options, typename T>
option_row toolOption(const char *name, T Options::*place, const std::string &placeholder,
                      const char *help) {
  option_row result = option_of<Options>(name, place, placeholder, ~0u, help);
  if (placeholder.find('|') == std::string::npos)
    return result;
  result.choices = placeholder;
  return std::move(result).checked([placeholder](const std::string &text) {
    return is_choice(placeholder, text) ? "" : "'" + text + "' is none of " + placeholder;
  });
}

/// Reads into `options`. The page that is asked for; empty: none is. Throws `failure` with all that
/// is wrong.
template <typename Options>
std::string readCommandLine(int argc, char **argv, const Tool &tool, Options &options) {
  const option_table table({{"", "Options"}}, tool.options);
  const std::string page = tool.page + "\n" + table.help("all", &options);
  command_line line = table.parse(argc - 1, argv + 1, &options);
  if (line.wants_help || line.wants_version)
    return line.wants_help ? page : std::string(tool.name) + " " TRAINC_VERSION "\n";
  options.words = std::move(line.words);
  options.given = std::move(line.given);
  auto isGiven = [&](const std::string &name, const std::string &) { return options.has(name); };
  for (option_problem &found : table.refused(&options, isGiven))
    line.problems.push_back(std::move(found));
  problem_list problems;
  for (const option_problem &found : line.problems)
    problems.add(with_advice("option " + found.option + ": " + found.message, found.advice));
  if (options.words.size() > tool.mostWords)
    problems.add("unexpected argument '" + options.words[tool.mostWords] + "'");
  problems.throw_if_any(exit_usage);
  if (tool.subject && options.words.empty())
    throw failure(exit_usage, tool.page.substr(0, page.find("\n\n") + 1) + tool.name + ": no " +
                                  tool.subject + " given\n  try: " + tool.name + " --help");
  return "";
}

/// The exit code of the work, or of what it throws, which is printed.
template <typename Options>
int runTool(int argc, char **argv, const Tool &tool, int (*work)(const Options &)) {
  int code = exit_success;
  try {
    Options options;
    const std::string page = readCommandLine(argc, argv, tool, options);
    fputs(page.c_str(), stdout);
    code = page.empty() ? work(options) : exit_success;
  } catch (const std::exception &error) {
    const failure problem = as_failure(error);
    fprintf(stderr, "%s\n", problem.message.c_str());
    code = problem.code;
  }
  return finish_standard_output(code, (std::string(tool.name) + ": ").c_str());
}

} // namespace trainc::tools
