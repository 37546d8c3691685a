// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/input_files.h"

#include "runtime/checkpoint/weight_files.h"
#include "runtime/data/data_array.h"
#include "runtime/data/data_manifest.h"
#include "runtime/failure.h"

namespace trainc {
namespace {

enum class naming { weights, weighed, of_input }; // FILE, FILE[:WEIGHT], NAME=FILE

struct input_option {
  const char *name;
  naming form;
};
constexpr input_option initialise = {"initialise", naming::weights};
constexpr input_option input_options[] = {{"data", naming::of_input},
                                          {"constant", naming::of_input},
                                          {"tokens", naming::weighed},
                                          {"validation-data", naming::of_input},
                                          {"validation-tokens", naming::weighed},
                                          initialise};

std::vector<std::string> named_files(const program &program, const input_option &option,
                                     const std::string &item) {
  try {
    if (item.empty()) // it is not given
      return {};
    if (option.form == naming::weights)
      return weight_files_of(item);
    return files_of(option.form == naming::weighed ? weighted(item).name
                                                   : named_file_of(program, item).file);
  } catch (const failure &) { // who opens the data says so, of all of them
    return {};
  }
}

void add(const program &program, const input_option &option, const std::vector<std::string> &items,
         std::vector<input_file_name> &all) {
  const std::string named_by = std::string("--") + option.name;
  for (const std::string &item : items)
    for (const std::string &file : named_files(program, option, item)) {
      all.push_back({file, named_by});
      all.push_back({manifest_of(file), named_by});
    }
}

} // namespace

std::vector<input_file_name> input_files_of(const program &program, const trainer_table &table,
                                            const trainer_options &options) {
  std::vector<input_file_name> all;
  for (const input_option &option : input_options)
    if (const option_row *row = table.find(option.name, options.command->bit))
      add(program, option, row->texts(&options), all);
  return all;
}

std::vector<input_file_name> input_files_of(const program &program,
                                            const run_configuration &configuration) {
  std::vector<input_file_name> all;
  for (const input_option &option : input_options)
    if (auto items = configuration.options.find(option.name); items != configuration.options.end())
      add(program, option, items->second, all);
  if (const std::string &from = configuration.origin.parameters; !from.empty())
    add(program, initialise, {from}, all);
  return all;
}

} // namespace trainc
