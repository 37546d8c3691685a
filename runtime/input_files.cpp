// SPDX-License-Identifier: Apache-2.0
#include "runtime/input_files.h"

#include "runtime/data_array.h"
#include "runtime/data_manifest.h"
#include "runtime/failure.h"

namespace trainc {
namespace {

enum class form { file, weighed, of_input }; // FILE, FILE[:WEIGHT], NAME=FILE

void add(const program &program, const std::string &option, const std::string &item, form form,
         std::vector<input_file_name> &all) {
  const std::string name = form == form::weighed    ? weighted(item).name
                           : form == form::of_input ? named_file_of(program, item).file
                                                    : item;
  for (const std::string &file : files_of(name)) {
    all.push_back({file, "--" + option});
    all.push_back({manifest_of(file), "--" + option});
  }
}

constexpr std::pair<const char *, form> options_of_files[] = {{"data", form::of_input},
                                                              {"constant", form::of_input},
                                                              {"tokens", form::weighed},
                                                              {"validation-data", form::of_input},
                                                              {"validation-tokens", form::weighed},
                                                              {"initialise", form::file}};

} // namespace

std::vector<input_file_name> input_files_of(const program &program,
                                            const trainer_options &options) {
  std::vector<std::string> initialise;
  if (!options.initialise.empty())
    initialise = {options.initialise};
  const std::vector<std::string> *lists[] = {&options.data,
                                             &options.constant,
                                             &options.tokens,
                                             &options.validation_data,
                                             &options.validation_tokens,
                                             &initialise};
  static_assert(std::size(lists) == std::size(options_of_files));
  std::vector<input_file_name> all;
  for (size_t i = 0; i < std::size(lists); ++i)
    for (const std::string &item : *lists[i])
      add(program, options_of_files[i].first, item, options_of_files[i].second, all);
  return all;
}

std::vector<input_file_name> input_files_of(const program &program,
                                            const run_configuration &configuration) {
  std::vector<input_file_name> all;
  for (auto [option, form] : options_of_files) {
    auto items = configuration.options.find(option);
    if (items == configuration.options.end())
      continue;
    for (const std::string &item : items->second)
      try {
        add(program, option, item, form, all);
      } catch (const failure &) { // it is not there any more
      }
  }
  if (const std::string &from = configuration.origin.parameters; !from.empty())
    all.push_back({from, "--initialise"});
  return all;
}

} // namespace trainc
