// SPDX-License-Identifier: Apache-2.0
//
// The files that options name, each with its option: what a result may not take the place of, and
// what a run that begins may not remove.
#pragma once

#include "runtime/options/run_configuration.h"
#include "runtime/options/trainer_table.h"
#include "runtime/program.h"

#include <string>
#include <vector>

namespace trainc {

struct input_file_name {
  std::string path, named_by; // "--tokens"
};

// Files of data, those beside them that trainc-data wrote, and --initialise. A pattern that fits no
// file names none here.
std::vector<input_file_name> input_files_of(const program &program, const trainer_table &table,
                                            const trainer_options &options);

// Those that a run's configuration names, where they are; what began it too.
std::vector<input_file_name> input_files_of(const program &program,
                                            const run_configuration &configuration);

} // namespace trainc
