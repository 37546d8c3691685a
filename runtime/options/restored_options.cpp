// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/restored_options.h"

#include "runtime/failure.h"
#include "runtime/options/run_configuration.h"

#include <map>

namespace trainc {

static std::string values_text(const std::vector<std::string> &texts) {
  std::string all;
  for (const std::string &text : texts)
    all += (all.empty() ? "" : " ") + text;
  return all.empty() ? "-" : all;
}

// "adamw --state-type bf16 --ema" of "adamw+bf16+ema" (dialects/train/optimizer.h).
static std::string as_options(std::string optimizer) {
  for (size_t at; (at = optimizer.find('+')) != std::string::npos;)
    optimizer.replace(at, 1, optimizer.substr(at) == "+ema" ? " --" : " --state-type ");
  return optimizer;
}

std::vector<std::string> restore_options(const program &program, const std::string &configuration,
                                         const trainer_table &table, trainer_options &options) {
  run_configuration before = read_configuration(configuration);
  const bool saved_none = before.option("no-checkpoints") == "yes";
  if (before.is_of_run) // of a trainer that kept it
    before.options.erase("no-checkpoints");
  if (!before.optimizer.empty() && before.optimizer != program.optimizer_name)
    throw failure(exit_usage, configuration + ": is of a run with the optimizer " +
                                  before.optimizer + ", this program has " +
                                  program.optimizer_name + "\n  try: trainc --optimizer " +
                                  as_options(before.optimizer));
  problem_list problems;
  std::vector<std::string> changes;
  if (!before.model.empty() && before.model != program.model_name)
    changes.push_back(
        format_text("the model '%s', was '%s'", program.model_name, before.model.c_str()));
  if (!before.precision.empty() && before.precision != program.precision)
    changes.push_back(
        format_text("the precision %s, was %s", program.precision, before.precision.c_str()));
  for (const std::string &change : changes_of_computation(before.computed, program))
    changes.push_back(change);
  for (const changed_option &change :
       table.restore(before.options, configuration, options, problems))
    changes.push_back("--" + change.name + " " + values_text(change.now) + ", was " +
                      values_text(change.before));
  if (before.is_of_run && saved_none && !options.no_checkpoints)
    changes.emplace_back("--no-checkpoints no, was yes: it is of one start");
  if (before.is_of_run) // with all options
    options.written.clear();
  problems.throw_if_any(exit_usage);
  return changes;
}

std::vector<std::string> check_agrees(const program &program, const std::string &file,
                                      const std::string &configuration, const trainer_table &table,
                                      const trainer_options &options) {
  trainer_options said = options, kept = options;
  restore_options(program, file, table, said);
  restore_options(program, configuration, table, kept);
  const std::map<std::string, std::vector<std::string>> named = read_configuration(file).options;
  problem_list problems;
  std::vector<std::string> notes;
  for (const option_row *row : table.of_run(*options.command)) {
    const auto before = table.kept_values(*row, kept), now = table.kept_values(*row, said);
    if (!named.count(row->name) || options.given.count(row->name) || before == now)
      continue;
    const std::string difference = file + ": says --" + row->name + " " + values_text(now) +
                                   ", and the run goes on with " + values_text(before);
    if (row->name == "micro-batches") // another number of ranks changes them
      notes.push_back(difference);
    else
      problems.add(difference + ", which " + configuration + " says\n  try: --" + row->name +
                   " on the command line, which goes before both, or the file as it was when the "
                   "run began");
  }
  problems.throw_if_any(exit_usage);
  return notes;
}

trainer_options kept_options(const program &program, const std::string &configuration,
                             const trainer_table &table) {
  const char *words[] = {"train"};
  trainer_options options = table.parse(1, words);
  restore_options(program, configuration, table, options);
  return options;
}

} // namespace trainc
